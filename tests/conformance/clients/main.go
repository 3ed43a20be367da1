// Calls the API with openapi-generator's Go client. Prints what it got, as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	openapi "assent"
)

func connect(token string) (*openapi.APIClient, context.Context) {
	settings := openapi.NewConfiguration()
	settings.Servers = openapi.ServerConfigurations{{URL: os.Getenv("BASE_URL")}}
	return openapi.NewAPIClient(settings), context.WithValue(context.Background(), openapi.ContextAccessToken, token)
}

// succeed returns the content of a successful response.
func succeed[T any](content T, _ *http.Response, err error) T {
	if err != nil {
		var refused *openapi.GenericOpenAPIError
		if errors.As(err, &refused) {
			panic(string(refused.Body()))
		}
		panic(err)
	}
	return content
}

// fail returns the status and the error of a refusal.
func fail[T any](_ T, response *http.Response, err error) (int, openapi.ErrorDescription) {
	var refused *openapi.GenericOpenAPIError
	if !errors.As(err, &refused) {
		panic(fmt.Sprint("not refused: ", err))
	}
	envelope, typed := refused.Model().(openapi.ErrorEnvelope)
	if !typed {
		panic(string(refused.Body()))
	}
	return response.StatusCode, envelope.Error
}

func main() {
	name, repositoryID := os.Getenv("NAME"), os.Getenv("REPOSITORY_ID")
	api, ctx := connect(os.Getenv("TOKEN"))
	me := succeed(api.SystemAPI.GetMe(ctx).Execute()).Data
	regions := succeed(api.SystemAPI.ListRegions(ctx).Execute()).Data

	wanted := openapi.NewProjectCreate(name, "eu-central")
	wanted.Websites = []string{"example.com"}
	made := succeed(api.ProjectsAPI.CreateProject(ctx).ProjectCreate(*wanted).Execute()).Data.CreatedProject
	read := succeed(api.ProjectsAPI.GetProject(ctx, made.Id).Execute()).Data
	page := succeed(api.ProjectsAPI.ListProjects(ctx).Limit(1).Execute())
	change := openapi.NewProjectUpdate()
	change.SetDescription("Changed")
	updated := succeed(api.ProjectsAPI.UpdateProject(ctx, made.Id).ProjectUpdate(*change).Execute()).Data
	wanted.Consent = &openapi.ConsentCreate{TrustedOrigins: []string{"example.com"}}
	invalidStatus, invalid := fail(api.ProjectsAPI.CreateProject(ctx).ProjectCreate(*wanted).Execute())

	item := succeed(api.InboxAPI.ListInboxItems(ctx).Status(openapi.OPEN).Limit(1).Execute()).Data[0]
	decision := *openapi.NewInboxItemUpdate("0")
	decision.SetStatus(openapi.ACCEPTED)
	staleStatus, stale := fail(api.InboxAPI.UpdateInboxItem(ctx, item.Id).InboxItemUpdate(decision).Execute())
	billing := succeed(api.BillingAPI.GetBilling(ctx).Execute()).Data

	scan := *openapi.NewScanCreate(repositoryID)
	asked := succeed(api.CodeAuditAPI.StartScan(ctx).ScanCreate(scan).Execute()).Data.ScanStarting
	polling := api.CodeAuditAPI.GetScanRequest(ctx, asked.PreparationId).RepositoryId(repositoryID)
	started := succeed(polling.Execute()).Data.ScanStarted

	gone := succeed(api.ProjectsAPI.DeleteProject(ctx, made.Id).Execute()).Data
	missingStatus, missing := fail(api.ProjectsAPI.GetProject(ctx, made.Id).Execute())
	unknown, unknownCtx := connect("assent_unknown")
	strangerStatus, stranger := fail(unknown.SystemAPI.GetMe(unknownCtx).Execute())

	printed, err := json.Marshal(map[string]any{
		"principal": me.Principal.Type,
		"regions":   len(regions),
		"website":   made.Websites[0].Origin,
		"read":      read.Name,
		"first":     page.Data[0].ProjectId == made.Id,
		"more":      page.Pagination.HasMore,
		"updated":   updated.Description.Get(),
		"invalid":   []any{invalidStatus, (*invalid.Details.ArrayOfProblem)[0].Path},
		"item":      item.Status,
		"stale":     []any{staleStatus, stale.Code},
		"plan":      billing.Plan.Id,
		"started":   started.Scan.RepositoryId == repositoryID,
		"deleted":   gone.DeletedWebsites,
		"missing":   []any{missingStatus, missing.Code},
		"stranger":  []any{strangerStatus, stranger.Code},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(printed))
}
