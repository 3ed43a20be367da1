# ruff: noqa: N803, N815
"""The naive peer: projects over FastAPI, Mangum, pydantic and boto3's client, the way most people write it first.

It reads and writes a single table with the calls the real functions make (the key counts in one write, a resource
is a GetItem, a list is a Query, a change reads and then writes under a condition), so only the way of writing differs:
synchronous endpoints and dependencies, `response_model`, boto3's type converters, every library's defaults.
"""

import hashlib
import os
import time
import uuid
from datetime import UTC, datetime
from typing import Annotated, Literal

import boto3
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError
from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from mangum import Mangum
from pydantic import BaseModel, Field

TABLE = os.environ["TABLE_NAME"]
client = boto3.client("dynamodb")
serializer, deserializer = TypeSerializer(), TypeDeserializer()

app = FastAPI(title="Projects", version="1.0.0")
bearer = HTTPBearer(auto_error=False)

Branding = Literal["assent", "openassent", "none"]


class Region(BaseModel):
    id: str
    label: str


class Website(BaseModel):
    id: str
    origin: str
    kind: Literal["domain", "wildcard", "any", "app", "development"]
    primary: bool
    audited: bool


class Consent(BaseModel):
    instanceId: str
    instanceSlug: str
    instanceName: str
    trustedOrigins: list[str] = Field(default_factory=list)
    branding: Branding
    backendURL: str | None = None
    dashboardURL: str = "https://dashboard.example.com/consent"
    backendVersion: str = "2.0.0"


class Products(BaseModel):
    consent: Consent | None


class Project(BaseModel):
    projectId: str
    projectSlug: str
    projectName: str
    description: str | None = Field(default=None, max_length=512)
    organizationId: str
    organizationSlug: str = "benchmark"
    dashboardURL: str = "https://dashboard.example.com/projects"
    products: Products
    websites: list[Website]
    createdAt: datetime
    version: int


class ProjectCreate(BaseModel):
    name: str = Field(min_length=1, max_length=100)
    region: str = Field(min_length=1)
    websites: list[str] = Field(default_factory=list)
    branding: Branding = "assent"


class ProjectUpdate(BaseModel):
    projectName: str | None = Field(default=None, min_length=1, max_length=100)
    description: str | None = Field(default=None, max_length=512)


class Pagination(BaseModel):
    nextCursor: str | None
    hasMore: bool


class ProjectAnswer(BaseModel):
    success: Literal[True] = True
    data: Project


class ProjectListAnswer(BaseModel):
    success: Literal[True] = True
    data: list[Project]
    pagination: Pagination


class RegionListAnswer(BaseModel):
    success: Literal[True] = True
    data: list[Region]


class Key(BaseModel):
    organizationId: str
    scopes: list[str]
    rateLimit: int
    calls: int


def to_item(values):
    return {name: serializer.serialize(value) for name, value in values.items()}


def from_item(item):
    return {name: deserializer.deserialize(value) for name, value in item.items()}


def project_key(organization_id, project_id):
    return to_item({"pk": f"ORG#{organization_id}", "sk": f"PROJECT#{project_id}"})


def authenticate(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> Key:
    if credentials is None:
        raise HTTPException(401, "no credential")
    digest = hashlib.sha256(credentials.credentials.encode()).hexdigest()
    try:
        out = client.update_item(
            TableName=TABLE,
            Key=to_item({"pk": f"KEY#{digest}", "sk": "KEY"}),
            UpdateExpression="ADD calls :one SET lastUsedAt = :now",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues=to_item({":one": 1, ":now": int(time.time())}),
            ReturnValues="ALL_NEW",
        )
    except ClientError as error:
        raise HTTPException(401, "bad credential") from error
    return Key(**from_item(out["Attributes"]))


def requires(scope: str):
    def check(key: Annotated[Key, Depends(authenticate)]) -> Key:
        if scope not in key.scopes:
            raise HTTPException(403, "scope missing")
        if key.calls > 10**9:
            raise HTTPException(429, "too many requests")
        return key

    return check


Reader = Annotated[Key, Depends(requires("projects.read"))]
Writer = Annotated[Key, Depends(requires("projects.write"))]


def find_project(organization_id: str, project_id: str) -> Project:
    out = client.get_item(TableName=TABLE, Key=project_key(organization_id, project_id), ConsistentRead=True)
    if "Item" not in out:
        raise HTTPException(404, "no such project")
    return Project(**from_item(out["Item"]))


@app.get("/v1/regions", response_model=RegionListAnswer)
def list_regions():
    return {"data": [Region(id="eu", label="Europe"), Region(id="us", label="United States")]}


@app.get("/v1/projects", response_model=ProjectListAnswer)
def list_projects(key: Reader, limit: Annotated[int, Query(ge=1, le=100)] = 50):
    out = client.query(
        TableName=TABLE,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :sk)",
        ExpressionAttributeValues=to_item({":pk": f"ORG#{key.organizationId}", ":sk": "PROJECT#"}),
        Limit=limit,
    )
    projects = [Project(**from_item(item)) for item in out["Items"]]
    return {"data": projects, "pagination": {"nextCursor": None, "hasMore": "LastEvaluatedKey" in out}}


@app.get("/v1/projects/{projectId}", response_model=ProjectAnswer)
def get_project(projectId: str, key: Reader):
    return {"data": find_project(key.organizationId, projectId)}


@app.post("/v1/projects", response_model=ProjectAnswer, status_code=201)
def create_project(body: ProjectCreate, key: Writer):
    project = sample_project(key.organizationId, str(uuid.uuid4()), body.name, body.websites)
    item = {**project_key(key.organizationId, project["projectId"]), **to_item(project)}
    client.put_item(TableName=TABLE, Item=item, ConditionExpression="attribute_not_exists(pk)")
    return {"data": project}


@app.patch("/v1/projects/{projectId}", response_model=ProjectAnswer)
def update_project(projectId: str, body: ProjectUpdate, key: Writer):
    project = find_project(key.organizationId, projectId)
    changes = body.model_dump(exclude_unset=True)
    sets = ", ".join(f"#{name} = :{name}" for name in changes)
    out = client.update_item(
        TableName=TABLE,
        Key=project_key(key.organizationId, projectId),
        UpdateExpression=f"SET {sets}, #version = :next",
        ConditionExpression="#version = :version",
        ExpressionAttributeNames={"#version": "version", **{f"#{name}": name for name in changes}},
        ExpressionAttributeValues=to_item(
            {
                ":version": project.version,
                ":next": project.version + 1,
                **{f":{name}": value for name, value in changes.items()},
            }
        ),
        ReturnValues="ALL_NEW",
    )
    return {"data": Project(**from_item(out["Attributes"]))}


def sample_project(organization_id: str, project_id: str, name: str, origins: list[str]) -> dict:
    """Returns a stored project, with which the benchmark seeds its table."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "projectId": project_id,
        "projectSlug": name.lower().replace(" ", "-"),
        "projectName": name,
        "description": None,
        "organizationId": organization_id,
        "products": {
            "consent": {
                "instanceId": f"ins_{project_id[:8]}",
                "instanceSlug": "consent",
                "instanceName": name,
                "branding": "assent",
            }
        },
        "websites": [
            {"id": f"web_{n}", "origin": origin, "kind": "domain", "primary": n == 0, "audited": False}
            for n, origin in enumerate(origins)
        ],
        "createdAt": now,
        "version": 1,
    }


handler = Mangum(app)
