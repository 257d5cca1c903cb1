import type { TeamRole } from "../../../src/access/team-store.ts";

/**
 * The expected access policy, written independently: the running server must match it, and a route without a row fails
 * the test.
 */

/**
 * Permission needed by a caller with an API key. `key` needs a valid one; `permission` one that may use the model and
 * the capability.
 */
export type KeyRow = "everybody" | "key" | "permission";

/** HTTP routes with a key: the API, and public files and documents. */
export const HTTP_ROWS: Readonly<Record<string, KeyRow>> = {
  "POST /v1/chat/completions": "permission",
  "POST /v1/route": "permission",
  "POST /v1/responses": "permission",
  "POST /v1/responses/input_tokens": "permission",
  // Refuses WebSockets.
  "GET /v1/responses": "everybody",
  // Not found where no responses are stored.
  "GET /v1/responses/{id}": "everybody",
  "DELETE /v1/responses/{id}": "everybody",
  "GET /v1/responses/{id}/input_items": "everybody",
  "POST /v1/embeddings": "permission",
  "POST /v1/images/generations": "permission",
  "POST /v1/images/edits": "permission",
  "POST /v1/messages": "permission",
  "POST /v1/messages/count_tokens": "permission",
  "GET /v1/models": "key",
  "GET /v1/models/{id}": "permission",
  "POST /v1beta/models/{model}:generateContent": "permission",
  "POST /v1beta/models/{model}:streamGenerateContent": "permission",
  "POST /v1beta/models/{model}:countTokens": "permission",
  "POST /v1/models/{model}:generateContent": "permission",
  "POST /v1/models/{model}:streamGenerateContent": "permission",
  "POST /v1/models/{model}:countTokens": "permission",
  "POST /models/{model}:generateContent": "permission",
  "POST /models/{model}:streamGenerateContent": "permission",
  "POST /models/{model}:countTokens": "permission",
  "POST /v1beta/models/{model}:embedContent": "permission",
  "POST /v1beta/models/{model}:batchEmbedContents": "permission",
  "POST /v1/models/{model}:embedContent": "permission",
  "POST /v1/models/{model}:batchEmbedContents": "permission",
  "POST /models/{model}:embedContent": "permission",
  "POST /models/{model}:batchEmbedContents": "permission",
  "GET /v1beta/models": "key",
  "GET /v1beta/models/{id}": "permission",
  "GET /openapi.json": "everybody",
  "GET /proto/{file}": "everybody",
  "GET /healthz": "everybody",
  "GET /readyz": "everybody",
  "POST /parley.v1.CompletionService/Create": "permission",
  "POST /parley.v1.CompletionService/Stream": "permission",
  "POST /parley.v1.CompletionService/Count": "permission",
  "POST /parley.v1.CompletionService/Explain": "permission",
  "POST /parley.v1.EmbeddingService/Create": "permission",
  "POST /parley.v1.ModelService/List": "key",
  "GET /parley.v1.ModelService/List": "key",
  "POST /parley.v1.ModelService/Get": "permission",
  "GET /parley.v1.ModelService/Get": "permission",
  "POST /parley.v1.KeyService/GetCurrent": "key",
  "GET /parley.v1.KeyService/GetCurrent": "key",
};

/** The operations port, which has no authentication. */
export const OPERATIONS_ROWS: Readonly<Record<string, KeyRow>> = {
  "/metrics": "everybody",
  "/healthz": "everybody",
  "/readyz": "everybody",
};

/** gRPC methods. */
export const GRPC_ROWS: Readonly<Record<string, KeyRow>> = {
  "/parley.v1.CompletionService/Create": "permission",
  "/parley.v1.CompletionService/Stream": "permission",
  "/parley.v1.CompletionService/Count": "permission",
  "/parley.v1.CompletionService/Explain": "permission",
  "/parley.v1.EmbeddingService/Create": "permission",
  "/parley.v1.ModelService/List": "key",
  "/parley.v1.ModelService/Get": "permission",
  "/parley.v1.KeyService/GetCurrent": "key",
  "/grpc.health.v1.Health/Check": "everybody",
  "/grpc.health.v1.Health/List": "everybody",
  "/grpc.health.v1.Health/Watch": "everybody",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": "everybody",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "everybody",
};

/** Permission needed by a caller with a session. */
export interface ConsoleRow {
  /** The least role; everybody who has signed in is a viewer at least. */
  readonly who: "anybody" | "signed in" | "developer" | "administrator" | "owner";
  /** Whether it needs a person: administration keys are refused. */
  readonly person?: true;
  /** Whether a custom role that reads keys, usage, requests and the audit log of all accounts allows it there. */
  readonly auditor?: true;
  /** Whether the password must have been entered within ten minutes. */
  readonly fresh?: true;
  /** Owner of the object of the call: other callers get not_found, or are refused. */
  readonly others?: "hidden" | "denied";
  /** The least role in a team, for calls about what a team owns; of a row with `others`. */
  readonly team?: TeamRole;
}

/** Services of the dashboard. */
export const CONSOLE_ROWS: Readonly<Record<string, ConsoleRow>> = {
  "SessionService/SignUp": { who: "anybody", person: true },
  "SessionService/SignIn": { who: "anybody", person: true },
  "SessionService/SignInByLink": { who: "anybody", person: true },
  "SessionService/SignOut": { who: "anybody", person: true },
  "SessionService/GetSession": { who: "anybody", person: true },
  "SessionService/GetInvitation": { who: "anybody", person: true },
  "SessionService/Reauthenticate": { who: "signed in", person: true },
  "SessionService/ChangePassword": { who: "signed in", person: true },
  "SessionService/ListSessions": { who: "signed in", person: true },
  "SessionService/SignOutElsewhere": { who: "signed in", person: true },
  "PasswordService/RequestReset": { who: "anybody", person: true },
  "PasswordService/Reset": { who: "anybody", person: true },
  "FactorService/GetPasskeyOptions": { who: "anybody", person: true },
  "FactorService/SignInByPasskey": { who: "anybody", person: true },
  "FactorService/Reset": { who: "administrator", fresh: true, person: true },
  "FactorService/List": { who: "signed in", person: true },
  "FactorService/BeginPasskey": { who: "signed in", fresh: true, person: true },
  "FactorService/AddPasskey": { who: "signed in", fresh: true, person: true },
  "FactorService/RemovePasskey": { who: "signed in", fresh: true, person: true },
  "FactorService/BeginTotp": { who: "signed in", fresh: true, person: true },
  "FactorService/ConfirmTotp": { who: "signed in", fresh: true, person: true },
  "FactorService/RemoveTotp": { who: "signed in", fresh: true, person: true },
  "FactorService/RenewRecoveryCodes": { who: "signed in", fresh: true, person: true },
  "AccountService/List": { who: "administrator" },
  "AccountService/Update": { who: "developer", others: "denied", team: "maintainer" },
  "AccountService/CreateInvitation": { who: "administrator", fresh: true },
  "AccountService/Offboard": { who: "administrator", fresh: true },
  "AccountService/ListInvitations": { who: "administrator" },
  "AccountService/RevokeInvitation": { who: "administrator", fresh: true },
  "AuditService/List": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "AuditService/Export": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "AuditService/ListStreams": { who: "administrator" },
  "AuditService/CreateStream": { who: "administrator", fresh: true },
  "AuditService/RemoveStream": { who: "administrator", fresh: true },
  "RoleService/List": { who: "administrator" },
  "RoleService/Create": { who: "owner", fresh: true },
  "RoleService/Update": { who: "owner", fresh: true },
  "RoleService/Remove": { who: "owner", fresh: true },
  "AdminKeyService/List": { who: "administrator" },
  "AdminKeyService/Create": { who: "administrator", fresh: true, person: true },
  "AdminKeyService/Revoke": { who: "administrator", fresh: true },
  "TeamService/List": { who: "signed in" },
  "TeamService/Create": { who: "administrator", fresh: true },
  "TeamService/ListMembers": { who: "signed in", others: "denied", team: "viewer" },
  "TeamService/SetMember": { who: "signed in", fresh: true, others: "denied", team: "maintainer" },
  "TeamService/RemoveMember": { who: "signed in", fresh: true, others: "denied", team: "maintainer" },
  "KeyService/List": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "KeyService/Get": { who: "signed in", auditor: true, others: "hidden", team: "viewer" },
  "KeyService/Create": { who: "developer", fresh: true, others: "denied", team: "developer" },
  "KeyService/Update": { who: "developer", fresh: true, others: "hidden", team: "developer" },
  "KeyService/Rotate": { who: "developer", fresh: true, others: "hidden", team: "developer" },
  "KeyService/Transfer": { who: "developer", fresh: true, others: "hidden", team: "developer" },
  "KeyService/Revoke": { who: "developer", fresh: true, others: "hidden", team: "developer" },
  "StopService/List": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "StopService/Create": { who: "developer", fresh: true, others: "denied", team: "developer" },
  "StopService/Remove": { who: "developer", fresh: true, others: "denied", team: "developer" },
  "AttributionService/ListBudgets": { who: "signed in", auditor: true, others: "hidden", team: "viewer" },
  "AttributionService/SetBudget": { who: "developer", fresh: true, others: "hidden", team: "developer" },
  "RoutingService/GetRouting": { who: "signed in", others: "denied", team: "viewer" },
  "RoutingService/SetCredential": { who: "developer", fresh: true, others: "denied", team: "maintainer" },
  "RoutingService/RemoveCredential": { who: "developer", fresh: true, others: "denied", team: "maintainer" },
  "RoutingService/SetAliases": { who: "developer", fresh: true, others: "denied", team: "maintainer" },
  "OverviewService/Get": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "UsageService/Summarize": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "UsageService/GetLatency": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "UsageService/GetSpending": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "RequestService/List": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "RequestService/Get": { who: "signed in", auditor: true, others: "hidden", team: "viewer" },
  "RequestService/GetContent": { who: "administrator" },
  "RequestService/Watch": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "RequestService/Export": { who: "signed in", auditor: true, others: "denied", team: "viewer" },
  "RequestService/ListSavedFilters": { who: "signed in", person: true },
  "RequestService/SaveFilter": { who: "signed in", person: true },
  "RequestService/RemoveSavedFilter": { who: "signed in", person: true },
  "SettingsService/Get": { who: "signed in" },
  "SettingsService/GetConfiguration": { who: "administrator" },
  "ConfigurationService/ListEntries": { who: "administrator" },
  "ConfigurationService/ChangeEntries": { who: "administrator", fresh: true },
  "ConfigurationService/Export": { who: "administrator" },
  "ConfigurationService/Import": { who: "administrator", fresh: true },
  "ConfigurationService/ListVersions": { who: "administrator" },
  "ConfigurationService/GetVersion": { who: "administrator" },
  "ConfigurationService/RollBack": { who: "administrator", fresh: true },
  "ConfigurationService/ListPresets": { who: "administrator" },
  "ConfigurationService/TestProvider": { who: "administrator", fresh: true },
  "ModelService/List": { who: "signed in" },
  "ModelService/ListUpstreams": { who: "administrator" },
  "ModelService/ListTargetHistory": { who: "administrator" },
  "ModelService/ExplainRoute": { who: "administrator" },
  "ModelService/TestModel": { who: "administrator" },
  "PlaygroundService/Stream": { who: "developer", person: true },
  "AlertService/List": { who: "signed in" },
  "AlertService/GetCount": { who: "signed in" },
  "AlertService/Acknowledge": { who: "developer", others: "hidden", team: "developer" },
  "AlertService/Mute": { who: "administrator" },
  "AlertService/ListChannels": { who: "administrator" },
  "AlertService/CreateChannel": { who: "administrator", fresh: true },
  "AlertService/UpdateChannel": { who: "administrator", fresh: true },
  "AlertService/RemoveChannel": { who: "administrator", fresh: true },
  "AlertService/TestChannel": { who: "administrator", fresh: true },
  "AlertService/GetThresholds": { who: "administrator" },
  "AlertService/SetThresholds": { who: "administrator", fresh: true },
};
