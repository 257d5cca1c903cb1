/**
 * Who may call what, written down once more: what the running server says must be this, and a route that is not here
 * fails the test.
 */

/** What a caller with an API key may do. `key` needs one; `permission` one that may use the model and what is asked of it. */
export type KeyRow = "everybody" | "key" | "permission";

/** By HTTP with a key: the routes of the front, and files and documents for everybody. */
export const HTTP_ROWS: Readonly<Record<string, KeyRow>> = {
  "POST /v1/chat/completions": "permission",
  "GET /v1/models": "key",
  "GET /v1/models/{id}": "permission",
  "GET /openapi.json": "everybody",
  "GET /proto/{file}": "everybody",
  "GET /healthz": "everybody",
  "GET /readyz": "everybody",
  "POST /parley.v1.CompletionService/Create": "permission",
  "POST /parley.v1.CompletionService/Stream": "permission",
  "POST /parley.v1.ModelService/List": "key",
  "POST /parley.v1.ModelService/Get": "permission",
  "POST /parley.v1.KeyService/GetCurrent": "key",
};

/** On the operators' port, which has no callers to tell apart: whoever reaches it may read it. */
export const OPERATIONS_ROWS: Readonly<Record<string, KeyRow>> = {
  "/metrics": "everybody",
  "/healthz": "everybody",
  "/readyz": "everybody",
};

/** By gRPC. */
export const GRPC_ROWS: Readonly<Record<string, KeyRow>> = {
  "/parley.v1.CompletionService/Create": "permission",
  "/parley.v1.CompletionService/Stream": "permission",
  "/parley.v1.ModelService/List": "key",
  "/parley.v1.ModelService/Get": "permission",
  "/parley.v1.KeyService/GetCurrent": "key",
  "/grpc.health.v1.Health/Check": "everybody",
  "/grpc.health.v1.Health/List": "everybody",
  "/grpc.health.v1.Health/Watch": "everybody",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": "everybody",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "everybody",
};

/** What a caller with a session may do. */
export interface ConsoleRow {
  readonly who: "anybody" | "signed in" | "administrator";
  /** Whether the password must have been given within ten minutes. */
  readonly fresh?: true;
  /** Whose thing the call is about: its owner's; others get the answer for one that does not exist, or are refused. */
  readonly others?: "hidden" | "denied";
}

/** The dashboard's services. */
export const CONSOLE_ROWS: Readonly<Record<string, ConsoleRow>> = {
  "SessionService/SignUp": { who: "anybody" },
  "SessionService/SignIn": { who: "anybody" },
  "SessionService/SignOut": { who: "anybody" },
  "SessionService/GetSession": { who: "anybody" },
  "SessionService/GetInvitation": { who: "anybody" },
  "SessionService/Reauthenticate": { who: "signed in" },
  "SessionService/ChangePassword": { who: "signed in" },
  "SessionService/ListSessions": { who: "signed in" },
  "SessionService/SignOutElsewhere": { who: "signed in" },
  "AccountService/List": { who: "administrator" },
  "AccountService/Update": { who: "signed in", others: "denied" },
  "AccountService/CreateInvitation": { who: "administrator", fresh: true },
  "AccountService/ListInvitations": { who: "administrator" },
  "AccountService/RevokeInvitation": { who: "administrator", fresh: true },
  "AccountService/ListSecurityEvents": { who: "signed in", others: "denied" },
  "KeyService/List": { who: "signed in", others: "denied" },
  "KeyService/Create": { who: "signed in", fresh: true, others: "denied" },
  "KeyService/Update": { who: "signed in", fresh: true, others: "hidden" },
  "KeyService/Rotate": { who: "signed in", fresh: true, others: "hidden" },
  "KeyService/Revoke": { who: "signed in", fresh: true, others: "hidden" },
  "UsageService/Summarize": { who: "signed in", others: "denied" },
  "UsageService/GetLatency": { who: "signed in", others: "denied" },
  "UsageService/GetSpending": { who: "signed in", others: "denied" },
  "RequestService/List": { who: "signed in", others: "denied" },
  "RequestService/Get": { who: "signed in", others: "hidden" },
  "RequestService/Watch": { who: "signed in", others: "denied" },
  "SettingsService/Get": { who: "signed in" },
  "SettingsService/GetConfiguration": { who: "administrator" },
  "ModelService/List": { who: "signed in" },
  "ModelService/ListUpstreams": { who: "administrator" },
  "PlaygroundService/Stream": { who: "signed in" },
};
