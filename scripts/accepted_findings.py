"""Findings of the template's scanners that are accepted: the variants in which they occur, and the reason.

`make template` fails if one doesn't occur anymore, so no reason outlives its finding. checkov's skips for single
resources are in the template, next to the resource. Runs in SAM's environment.
"""

from typing import NamedTuple

from local.template import load_template


class Accepted(NamedTuple):
    """variants: the names in `check_template.VARIANTS`, separated by spaces."""

    variants: str
    reason: str


# Problems of an upgrade from the last release that CHANGELOG.md announces, with its text. The next release removes
# them here.
ANNOUNCED: dict[str, str] = {}

_ALL = "defaults everything elsewhere"
_POOL = "defaults everything"
_WITHOUT_KEY = "defaults elsewhere"
_LAMBDA_POLICY = "AwsSolutions-IAM4[Policy::arn:aws:iam::aws:policy/"
_PARTITION_POLICY = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/"

ACCEPTED: dict[str, Accepted] = {
    # checkov
    "CKV_AWS_26": Accepted(
        "defaults",
        "CloudWatch can't publish to a topic that AWS's managed key encrypts. Alarms contain no data of customers.",
    ),
    "CKV_AWS_27": Accepted(_WITHOUT_KEY, "Queues are encrypted with a key of SQS, which this check doesn't recognize."),
    "CKV_AWS_115": Accepted(
        _WITHOUT_KEY, "A new account has no executions to reserve. ReservedConcurrency reserves them."
    ),
    "CKV_AWS_116": Accepted(
        _ALL,
        "The gateway or CodeDeploy waits, a failed message stays in its queue, and the next sweep follows.",
    ),
    "CKV_AWS_117": Accepted(
        _ALL, "Functions call AWS and the code host over TLS, and don't listen. A VPC would add a NAT gateway."
    ),
    "CKV_AWS_119": Accepted(_WITHOUT_KEY, "The table is encrypted with AWS's managed key. KmsKeyArn replaces it."),
    "CKV_AWS_149": Accepted(_WITHOUT_KEY, "Secrets are encrypted with AWS's managed key. KmsKeyArn replaces it."),
    "CKV_AWS_158": Accepted(_WITHOUT_KEY, "Logs are encrypted with a key of CloudWatch Logs. KmsKeyArn replaces it."),
    "CKV_AWS_173": Accepted(_WITHOUT_KEY, "Variables are encrypted with AWS's managed key. KmsKeyArn replaces it."),
    # parliament
    "RESOURCE_MISMATCH[codedeploy:PutLifecycleEventHookExecutionStatus]": Accepted(
        _ALL, "AWS's list names no resource for it. CodeDeploy checks the deployment group, as in SAM's guide."
    ),
    # cdk-nag
    "AwsSolutions-APIG2": Accepted(
        _ALL, "The functions validate requests, and return errors that the gateway's validation can't express."
    ),
    "AwsSolutions-APIG3": Accepted("defaults elsewhere", "A web ACL costs by the month. WebAclArn sets it."),
    "AwsSolutions-APIG6": Accepted(
        _ALL, "Execution logs contain headers and bodies, and so credentials. The access log has every request."
    ),
    "AwsSolutions-CFR1": Accepted("everything", "The service is for all countries. FrontDoorWebAclArn can limit them."),
    "AwsSolutions-CFR3": Accepted(
        "everything",
        "CloudFront's log has client addresses and IDs in paths. The gateway logs every request.",
    ),
    "AwsSolutions-COG1": Accepted(
        _POOL, "NIST SP 800-63B advises against composition rules. The minimum length is 12 characters."
    ),
    "AwsSolutions-COG2": Accepted("defaults", "Not everyone has an authenticator app. MultiFactorSignIn requires one."),
    "AwsSolutions-COG8": Accepted(
        _POOL, "PLUS costs for each person who signs in. An issuer of your own (SignInIssuer) can detect threats."
    ),
    f"{_PARTITION_POLICY}service-role/AWSBackupServiceRolePolicyForBackup]": Accepted(
        "everything", "AWS keeps it in step with what AWS Backup calls. Only AWS Backup can assume the role."
    ),
    f"{_PARTITION_POLICY}service-role/AmazonAPIGatewayPushToCloudWatchLogs]": Accepted(
        _POOL, "API Gateway rejects a role that may not write every log group."
    ),
    f"{_PARTITION_POLICY}service-role/AWSCodeDeployRoleForLambdaLimited]": Accepted(
        _ALL, "AWS keeps it in step with what CodeDeploy calls. Only CodeDeploy can assume the role."
    ),
    f"{_LAMBDA_POLICY}service-role/AWSLambdaBasicExecutionRole]": Accepted(
        _ALL, "SAM adds it. FunctionBoundary limits it to log groups named after the stack."
    ),
    f"{_LAMBDA_POLICY}AWSXrayWriteOnlyAccess]": Accepted(
        _ALL, "SAM adds it. FunctionBoundary limits it to the two actions that write traces."
    ),
    "AwsSolutions-IAM5[Resource::*]": Accepted(_ALL, "X-Ray has no resources. Only its two actions are on all."),
    "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:ses:<AWS::Region>:<AWS::AccountId>:identity/*]": Accepted(
        _ALL, "SES may have verified the sender's address or its domain. A condition names the sender."
    ),
    "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:/aws/lambda/"
    "<AWS::StackName>-*]": Accepted(
        _ALL, "A list of the functions' log groups would take half of the length that AWS allows for the boundary."
    ),
    "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:*]": Accepted(
        _ALL, "FunctionBoundary allows every queue, and each function's own policy names its own."
    ),
    'AwsSolutions-IAM5[Resource::["${Arn}/index/*",{"Arn":{"Fn::GetAtt":["Table","Arn"]}}]]': Accepted(
        "defaults elsewhere", "FunctionBoundary allows every index, and each function's own policy names its own."
    ),
    'AwsSolutions-IAM5[Resource::["${Arn}/index/*",{"Arn":{"Fn::Sub":"arn:${AWS::Partition}:dynamodb:${AWS::Region}:'
    '${AWS::AccountId}:table/${TableName}"}}]]': Accepted("everything", "The same, of the table that TableName names."),
    **{
        f"AwsSolutions-IAM5[Resource::<{name}Function.Arn>*]": Accepted(
            _ALL, "The check of a deployment invokes versions, whose numbers aren't known before."
        )
        for name in load_template()["Mappings"]["Functions"]
    },
    "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:codedeploy:<AWS::Region>:<AWS::AccountId>:deploymentgroup:"
    "<ServerlessDeploymentApplication>/*]": Accepted(
        _ALL, "These are the deployment groups of the stack's application, one for each function."
    ),
    "AwsSolutions-L1": Accepted(_ALL, "Lambda supports Python 3.13, which every dependency is locked for, until 2029."),
    "AwsSolutions-SMG4": Accepted(
        _ALL, "A rotation takes steps at GitHub or several deployments. The operations guide describes them."
    ),
    "AwsSolutions-SNS3": Accepted(
        "defaults",
        "Only this account can publish to the topic, and only CloudWatch does. AWS's services use TLS.",
    ),
}
