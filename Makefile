# Every target installs what it needs; a second run installs nothing.

SHELL := /bin/sh
PYTHON_FILES := conftest.py functions layers cli local ops scripts tests benchmarks tools
# These aren't deployed. They run other programs (B404, B603) and contain sample secrets (B105); ruff's more precise
# versions of these rules apply to them.
RISKY_TOOLS := cli/src/openassent_cli local ops scripts benchmarks tools
export PYTHONPATH := functions:layers/shared:layers/analysis:layers/audit:cli/src:.
export SAM_CLI_TELEMETRY := 0
# Without compiled modules, every process of the tests would compile the product again.
unexport PYTHONDONTWRITEBYTECODE
# What /docs serves, represented by one of its files.
REFERENCE := functions/system/reference/index.html
# The generated modules of the SDK, represented by the one that is written last.
SDK := cli/src/openassent/models.py
# The rules that answer banners of websites, represented by their license. Without npm, audits do without them, and
# what is built has no browser for them.
AUTOCONSENT := layers/audit/openassent_audit/resources/autoconsent/LICENSE
# What the wheel of the command line is made of.
WHEEL_SOURCES := $(shell find cli/src layers/analysis/openassent_analysis layers/audit/openassent_audit cli/README.md cli/pyproject.toml LICENSE -type f -not -name '*.pyc')
.DEFAULT_GOAL := help
.PHONY: help tools run reset test test-analysis test-cli races conformance linear nightly mutate lagging fuzz lint template check build cli typescript e2e browser websites bench accuracy deploy release publish openapi sdk lock format audit licenses sbom

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: .venv/.ready .tools/sam/.ready .tools/ministack/.ready $(REFERENCE) $(AUTOCONSENT) ## Run the whole stack on this machine, with demo data (PORT=3000)
	@.venv/bin/python -m local

reset: ## Delete the local stack's data and credentials
	@scripts/reset

test: .venv/.ready .tools/sam/.ready $(REFERENCE) $(SDK) ## Run what a change to the product can break: every operation, page, worker, and command (ENGINE=fast, CLIENT=boto3)
	@$(NICE) .venv/bin/python -m pytest -n 2 --dist worksteal --engine=$(or $(ENGINE),moto) --client=$(or $(CLIENT),own) \
		tests/architecture tests/functional tests/unit cli/tests layers/analysis/tests

test-analysis: .venv/.ready ## Run the tests of the code analysis alone
	@.venv/bin/python -m pytest -n 2 layers/analysis/tests

test-cli: .venv/.ready $(SDK) ## Run the tests of the command line and the SDK alone
	@.venv/bin/python -m pytest -n 2 cli/tests

races: .venv/.ready .tools/sam/.ready .tools/ministack/.ready node_modules/.ready $(REFERENCE) ## Run concurrent requests in every order that matters, and with every fault
	@$(NICE) .venv/bin/python -m pytest -n 2 --dist worksteal --engine=fast tests/races

conformance: .venv/.ready .tools/sam/.ready .tools/conformance/.ready node_modules/.ready $(REFERENCE) ## Test the API with requests and clients that are generated from docs/openapi.json
	@$(NICE) .venv/bin/python -m pytest -n 2 tests/conformance

linear: .venv/.ready ## Check that text from clients and repositories is read in linear time
	@$(NICE) .venv/bin/python -m pytest -n 2 tests/nightly

nightly: races conformance linear websites fuzz lagging ## Run everything that only pays off at length

# Made before the parts of .ci/run, so that no two of them make the same environment at the same time.
tools: .venv/.ready node_modules/.ready $(patsubst %,.tools/%/.ready,ministack sam sdk cli) $(REFERENCE) $(SDK) ## Install what several parts of .ci/run need

# Containers of the end-to-end tests change the machine's network, at which Chromium gives up what it is loading.
$(filter timed-websites,$(MAKECMDGOALS)): $(filter timed-e2e,$(MAKECMDGOALS))

# Says how long a target took, for .ci/run.
timed-%:
	@start=$$(date +%s); $(MAKE) --no-print-directory $*; code=$$?; echo "took $$(($$(date +%s) - start)) s: $*"; exit $$code

mutate: .venv/.ready .tools/sam/.ready node_modules/.ready $(REFERENCE) $(SDK) ## Change the changed lines (BASE=main), or a FILE, and list what no test notices (TESTS=tests/functional/billing LIMIT=40 SEED=7 WITHIN=80)
	@.venv/bin/python -m tools.mutate $(addprefix --base ,$(BASE)) $(addprefix --file ,$(FILE)) $(addprefix --tests ,$(TESTS)) \
		$(if $(ONLY),--only '$(ONLY)') $(addprefix --limit ,$(LIMIT)) $(addprefix --seed ,$(SEED)) $(addprefix --seconds ,$(WITHIN))

lagging: .venv/.ready .tools/sam/.ready node_modules/.ready $(REFERENCE) $(SDK) ## Run the functional and race tests on a table whose eventually consistent reads are late (BOUND=1: by one write)
	@.venv/bin/python -m pytest -n 2 --dist worksteal --engine=fast $(if $(BOUND),--lagging=$(BOUND),--lagging) -- tests/functional tests/races

fuzz: .venv/.ready .tools/sam/.ready .tools/conformance/.ready node_modules/.ready $(REFERENCE) $(SDK) ## Test with requests generated from docs/openapi.json, and properties with random examples (EXAMPLES=300 SEED=7)
	@FUZZ_EXAMPLES=$(or $(EXAMPLES),300) FUZZ_SEED=$(SEED) .venv/bin/python -m pytest -n 2 \
		$(if $(SEED),--hypothesis-seed=$(SEED)) tests/conformance/test_document.py $$(grep -rlE 'hypothesis import .*given' tests cli/tests layers/analysis/tests)

lint: .venv/.ready node_modules/.ready .tools/supply/.ready $(SDK) ## Check style, types, risks, licenses, imports, phrases, and that docs/openapi.json is current
	@.venv/bin/ruff check $(wildcard $(PYTHON_FILES))
	@.venv/bin/ruff format --check $(wildcard $(PYTHON_FILES))
	@.venv/bin/mypy
	@.venv/bin/mypy --python-version 3.11 layers/analysis layers/audit cli/src
	@.venv/bin/lint-imports
	@.venv/bin/python -m scripts.language
	@.tools/supply/bin/bandit -q -r functions layers/shared layers/analysis/openassent_analysis layers/audit/openassent_audit cli/src/openassent
	@.tools/supply/bin/bandit -q -r $(wildcard $(RISKY_TOOLS)) --skip B101,B105,B404,B603
	@$(MAKE) --no-print-directory --output-sync=none licenses >/dev/null  # or it waits for a lock of its output
	@.venv/bin/python -m scripts.openapi --check
	@scripts/lint-openapi

template: .tools/sam/.ready .tools/checkov/.ready ## Check the transformed template.yaml with scanners, and compare it with the last release
	@.tools/sam/bin/python -m scripts.check_template

check: lint test ## Lint, then test

format: .venv/.ready ## Format the code as make lint expects it
	@.venv/bin/ruff check --fix $(wildcard $(PYTHON_FILES))
	@.venv/bin/ruff format $(wildcard $(PYTHON_FILES))

cli: .tools/cli/.installed ## Build the wheel of the command line and the Python SDK, and the GitHub Action, into dist/

typescript: node_modules/.ready ## Build the npm package of the TypeScript client into dist/
	@mkdir -p dist && cd clients/typescript && npm pack --silent --pack-destination ../../dist

build: .tools/sam/.ready .venv/.ready $(REFERENCE) $(AUTOCONSENT) ## Build the deployable artifacts into .aws-sam/ (ARCHITECTURE=x86_64: for it)
	@scripts/build $(if $(ARCHITECTURE),--architecture $(ARCHITECTURE))

e2e: .venv/.ready .tools/ministack/.ready .tools/sam/.ready .tools/lambda/.ready $(REFERENCE) $(AUTOCONSENT) ## Build, deploy to a local AWS, and test the deployment
	@.venv/bin/python -m pytest -m e2e tests/e2e

browser: .venv/.ready .tools/sam/.ready .tools/ministack/.ready .tools/cli/.installed node_modules/.ready $(REFERENCE) ## Test the pages in Chromium, and the command line in a terminal
	@.venv/bin/python -m pytest -m browser tests/browser

websites: .venv/.ready node_modules/.ready $(AUTOCONSENT) ## Audit small websites with a known truth, and try to break out of an audit
	@$(NICE) .venv/bin/python -m pytest tests/audits

bench: .venv/.ready .tools/sam/.ready node_modules/.ready $(REFERENCE) ## Measure: ratios, round trips and capacity units per operation
	@.venv/bin/python -m benchmarks

accuracy: .venv/.ready ## Compare the code analysis with verdicts on the repositories in FOLDER
	@.venv/bin/python -m benchmarks.accuracy $(if $(LIST),--list) $(FOLDER) \
		$(or $(VERDICTS),benchmarks/verdicts/development.tsv)

deploy: $(if $(VERSION),.tools/sam/.ready,build) ## Deploy to the AWS account of the current credentials (STACK=assent PARAMETERS="LogLevel=DEBUG"; CI=1: don't ask; VERSION=1.2.0: a published release, without a build)
	@.tools/sam/bin/$(if $(VERSION),python -m scripts.releases deploy $(VERSION),sam deploy) $(if $(STACK),--stack-name $(STACK)) $(if $(CI),--no-confirm-changeset) \
		--parameter-overrides Release=$$(date -u +%Y%m%dT%H%M%SZ) \
		$(if $(ARCHITECTURE),Architecture=$(ARCHITECTURE)) $(PARAMETERS)

release: .venv/.ready ## Name what CHANGELOG.md has under Unreleased, commit that, and tag it (VERSION=1.2.0)
	@.venv/bin/python -m scripts.releases prepare $(VERSION)

publish: build ## Keep the build of the release that is checked out, so that it can be deployed later
	@.tools/sam/bin/python -m scripts.releases publish

# Licenses that a hosted service may build on without obligations to its users, as the packages spell them.
LICENSES := Apache-2.0;Apache Software License;BSD-3-Clause;BSD License;ISC;MIT;MIT License;MIT-0
LICENSES := $(LICENSES);MIT No Attribution License (MIT-0);MPL-2.0;Mozilla Public License 2.0 (MPL 2.0);PSF-2.0
LICENSES := $(LICENSES);Apache-2.0 OR BSD-3-Clause;MIT AND PSF-2.0
DEPLOYED := $(wildcard layers/*/requirements.txt functions/*/requirements.txt)

licenses: .venv/.ready .tools/supply/.ready ## List the license of each deployed package; fail if one isn't allowed
	@.tools/supply/bin/pip-licenses --python .venv/bin/python --from mixed --format markdown \
		--allow-only "$(LICENSES)" --packages $$(sed -nE 's/^([A-Za-z0-9._-]+)==.*/\1/p' $(DEPLOYED) | sort -u)

sbom: .tools/supply/.ready ## Write dist/sbom.cdx.json (CycloneDX), the bill of materials of the deployed packages
	@mkdir -p dist
	@cat $(DEPLOYED) | .tools/supply/bin/cyclonedx-py requirements - --pyproject pyproject.toml \
		--output-reproducible --of JSON -o dist/sbom.cdx.json

# Not part of make check: the result depends on the day, and PyPI and npm must be reachable.
audit: .tools/supply/.ready ## Check every pin, including the tools', for known vulnerabilities
	@scripts/audit

openapi: .venv/.ready node_modules/.ready ## Generate docs/openapi.json from the apps, the reference from it, and the texts about rules
	@.venv/bin/python -m scripts.openapi
	@.venv/bin/python -m scripts.rule_texts
	@.venv/bin/python -m scripts.reference

sdk: $(SDK) ## Generate the SDK's models and operations from docs/openapi.json, and its synchronous client

$(SDK): docs/openapi.json $(wildcard cli/src/openassent/_async/*.py scripts/sdk/*.*) cli/src/openassent/errors.py \
		$(addprefix scripts/reference/,calls.py forms.yaml samples.py) .tools/sdk/.ready
	@.tools/sdk/bin/python -m scripts.sdk

# Without Redoc, the page lists its files, which is enough for `make test`, and npm isn't needed.
$(REFERENCE): docs/openapi.json docs/errors.md docs/webhooks.md $(wildcard docs/guides/* scripts/reference/*.* scripts/reference/templates/*) \
		layers/shared/controlplane/platform/core/plans.py layers/shared/controlplane/platform/core/scopes.py .venv/.ready \
		$(wildcard layers/analysis/openassent_analysis/resources/rules/*/*.yml) \
		$(if $(filter test,$(MAKECMDGOALS)),,node_modules/.ready)
	@.venv/bin/python -m scripts.reference

# UPGRADE=1 takes the newest versions. Without it, existing pins are kept.
LOCK = .tools/uv/bin/uv pip compile --quiet --universal --python-version 3.13 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

TOOLS := ministack sam conformance checkov lambda sdk supply

lock: .tools/uv/.ready ## Update the hashed pins from pyproject.toml, requirements/*.in, and package.json (UPGRADE=1: newest)
	@$(LOCK) pyproject.toml -o layers/shared/requirements.txt
	@for lock in layers/analysis/requirements.txt layers/audit/requirements.txt functions/*/requirements.txt; do \
		$(LOCK) --group pyproject.toml:$$(basename $$(dirname $$lock)) -c layers/shared/requirements.txt -o $$lock || exit 1; \
	done
	@$(LOCK) pyproject.toml --group dev $(addprefix -c ,$(DEPLOYED)) -o requirements/dev.txt
	@$(LOCK) cli/pyproject.toml --all-extras requirements/cli.in -o requirements/cli.txt
	@$(LOCK) cli/pyproject.toml --extra scan -c requirements/cli.txt -o requirements/action.txt
	@for tool in uv $(TOOLS); do \
		$(LOCK) requirements/$$tool.in -o requirements/$$tool.txt || exit 1; \
	done
	@scripts/npm-lock

# bin/python is a link: if its interpreter is replaced or removed, the environment is rebuilt.
.venv/bin/python $(patsubst %,.tools/%/bin/python,uv cli $(TOOLS)):
	@:

.tools/uv/.ready: requirements/uv.txt .tools/uv/bin/python
	@scripts/environment .tools/uv requirements/uv.txt

.venv/.ready: requirements/dev.txt .tools/uv/.ready .venv/bin/python
	@scripts/environment .venv requirements/dev.txt

$(patsubst %,.tools/%/.ready,cli $(TOOLS)): .tools/%/.ready: requirements/%.txt .tools/uv/.ready .tools/%/bin/python
	@scripts/environment .tools/$* requirements/$*.txt

.tools/cli/.installed: .tools/cli/.ready pyproject.toml action.yml requirements/action.txt scripts/action $(WHEEL_SOURCES) $(SDK) | $(AUTOCONSENT)
	@rm -f dist/openassent-*.whl
	@mkdir -p cli/man
	@.tools/cli/bin/python -m openassent_cli.manual >cli/man/assent.1
	@cd cli && ../.tools/cli/bin/hatchling build -t wheel -d $(CURDIR)/dist >/dev/null
	@scripts/action
	@.tools/uv/bin/uv pip install --python .tools/cli/bin/python --quiet --offline --no-deps --reinstall dist/openassent-*.whl
	@touch $@

# Redoc, axe, the linters of docs/openapi.json, the browser of audits on Lambda, and the race tests' engine, which
# doesn't exist for every platform.
node_modules/.ready: package-lock.json
	@scripts/npm-tools

$(AUTOCONSENT): node_modules/.ready
	@cd node_modules/@duckduckgo/autoconsent 2>/dev/null || exit 0; mkdir -p $(CURDIR)/$(@D); \
		cp dist/autoconsent.playwright.js rules/rules.json LICENSE $(CURDIR)/$(@D)
