// Runs cdk-nag's AwsSolutions rules on transformed templates: part of make template. Arguments are files of templates
// without conditions. Prints its findings as JSON: a list of the file's name, the rule, and the resource.
//
// The rules visit the resources directly. Synthesizing the app would take a minute, for checks that cfn-lint makes.
const { createRequire } = require("node:module")
const path = require("node:path")
const installed = createRequire(path.resolve(__dirname, "../.tools/nag/package.json"))
const { App, Stack } = installed("aws-cdk-lib")
const { CfnInclude } = installed("aws-cdk-lib/cloudformation-include")
const { AwsSolutionsChecks } = installed("cdk-nag")

const found = []
for (const file of process.argv.slice(2)) {
  const name = path.parse(file).name
  const add = (rule, detail, resource) =>
    found.push([name, detail ? `${rule}[${detail}]` : rule, resource.node.id])
  const ignore = () => {}
  const logger = {
    onCompliance: ignore,
    onNonCompliance: (it) => add(it.ruleId, it.findingId, it.resource),
    onNotApplicable: ignore,
    onSuppressed: ignore,
    // A rule that can't be evaluated is a finding, too.
    onError: (it) => add(it.ruleId, `not evaluated: ${it.errorMessage}`, it.resource),
    onSuppressedError: ignore,
  }
  const stack = new Stack(new App(), "stack")
  new CfnInclude(stack, "template", { templateFile: file })
  const rules = new AwsSolutionsChecks({ additionalLoggers: [logger], reports: false })
  for (const construct of stack.node.findAll()) rules.visit(construct)
}
console.log(JSON.stringify(found))
