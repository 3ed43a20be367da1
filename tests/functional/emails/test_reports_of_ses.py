"""The template's rules make messages of SES's events that name the email and contain no address."""

import json
import re
from typing import Any

from controlplane.notify.mail_messages import EMAIL_MESSAGES, MailReport
from local.template import load_template
from ops.dead_letters import reduced
from tests.support.each import each
from tests.support.template import resources

MAIL = "usr_5w1n8q2k7m3r9t4v-0123456789abcdefgh"
# As SES describes them, with what the rules read and some of what they must leave out.
DETAIL = {
    "mail": {
        "destination": ["ada@example.com"],
        "headers": [{"name": "To", "value": "ada@example.com"}],
        "tags": {"ses:configuration-set": ["assent"], "mail": [MAIL], "ses:from-domain": ["example.com"]},
    }
}
BOUNCE = {"bounceType": "Permanent", "bouncedRecipients": [{"emailAddress": "ada@example.com"}]}
EVENTS = {
    "Email Sent": (DETAIL, ("sent", "")),
    "Email Bounced": ({**DETAIL, "bounce": BOUNCE}, ("bounced", "Permanent")),
    "Email Complaint Received": ({**DETAIL, "complaint": {"complainedRecipients": []}}, ("complained", "")),
}


def transformed(rule: dict[str, Any], event: dict[str, Any]) -> str:
    """Returns what EventBridge sends: in the template's text, each name in angle brackets is a value of the event."""
    (target,) = rule["Properties"]["Targets"]
    transformer = target["InputTransformer"]

    def value(match: re.Match[str]) -> str:
        found: Any = event
        for name in transformer["InputPathsMap"][match[1]].removeprefix("$.").split("."):
            found = found[name]
        return found if isinstance(found, str) else json.dumps(found)

    return re.sub(r"<(\w+)>", value, transformer["InputTemplate"])


def rules() -> dict[str, dict[str, Any]]:
    return {
        rule["Properties"]["EventPattern"]["detail-type"][0]: rule for rule in resources("AWS::Events::Rule").values()
    }


@each("kind", EVENTS)
def test_an_event_becomes_a_message_without_addresses(kind):
    detail, (event, bounce_type) = EVENTS[kind]
    body = transformed(rules()[kind], {"source": "aws.ses", "detail-type": kind, "detail": detail})
    assert "@" not in body
    assert "example.com" not in body
    report = EMAIL_MESSAGES.validate_json(body)
    assert isinstance(report, MailReport)
    assert (report.event, report.mail, report.bounce_type) == (event, (MAIL,), bounce_type)


@each("kind", EVENTS)
def test_an_event_that_became_a_dead_letter_is_redriven_as_the_same_message(kind):
    event = {"source": "aws.ses", "detail-type": kind, "detail": EVENTS[kind][0]}
    assert json.loads(reduced(json.dumps(event))) == json.loads(transformed(rules()[kind], event))


def may_send_to(queue: dict[str, list[str]]) -> set[str]:
    """Returns the rules that the queue's policy lets send to it."""
    (policy,) = [
        it["Properties"]
        for it in resources("AWS::SQS::QueuePolicy").values()
        if it["Properties"]["Queues"] == [{"Ref": queue["Fn::GetAtt"][0]}]
    ]
    condition, statement, none = policy["PolicyDocument"]["Statement"][1]["Fn::If"]
    assert (condition, none) == ("SendsEmail", {"Ref": "AWS::NoValue"})
    assert (statement["Principal"], statement["Resource"]) == ({"Service": "events.amazonaws.com"}, queue)
    return {it["Fn::GetAtt"][0] for it in statement["Condition"]["ArnEquals"]["aws:SourceArn"]}


def test_each_rule_sees_only_this_stacks_emails_and_may_send_to_the_queue():
    assert rules().keys() == EVENTS.keys()
    for rule in rules().values():
        pattern = rule["Properties"]["EventPattern"]
        assert pattern["source"] == ["aws.ses"]
        assert pattern["detail"]["mail"]["tags"] == {"ses:configuration-set": [{"Ref": "AWS::StackName"}]}
        (target,) = rule["Properties"]["Targets"]
        assert target["Arn"] == {"Fn::GetAtt": ["EmailsQueue", "Arn"]}
        # Its workers' dead letters, so that they are redriven to the same queue.
        properties = resources("AWS::SQS::Queue")[target["Arn"]["Fn::GetAtt"][0]]["Properties"]
        assert target["DeadLetterConfig"]["Arn"] == properties["RedrivePolicy"]["deadLetterTargetArn"]
        for queue in (target["Arn"], target["DeadLetterConfig"]["Arn"]):
            assert may_send_to(queue) == set(resources("AWS::Events::Rule"))
    destination = load_template()["Resources"]["EmailEvents"]["Properties"]["EventDestination"]
    assert destination["MatchingEventTypes"] == ["SEND", "BOUNCE", "COMPLAINT"]
