import { fromBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials } from "@grpc/grpc-js";
import { Agent, fetch as fetchAs } from "undici";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { createDatabase } from "../support/postgres.ts";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { TEAM_ROLES } from "../../src/access/permissions.ts";
import { POLICIES } from "../../src/inbound/dashboard/policy.ts";
import { PAGE_PATHS, requestPath } from "../../web/paths.ts";
import { ROUTES } from "../../src/inbound/http/routes.ts";
import { OPERATIONS_PATHS } from "../../src/inbound/http/operations.ts";
import { tlsGrpcClient } from "../support/tls-client.ts";
import { askConsole, askGrpc, askHttp, httpOutcome, type Outcome, type Send } from "./routes/ask.ts";
import { CONSOLE_ROWS, type ConsoleRow, GRPC_ROWS, HTTP_ROWS, type KeyRow, OPERATIONS_ROWS } from "./routes/rows.ts";
import { MODEL, type ObjectOwner, RELEASED, type RoutesWorld, startRoutesWorld } from "./routes/world.ts";
import { figure } from "./support/figures.ts";
import { timeLimit } from "../support/scale.ts";

let world: RoutesWorld;
let grpc: Client;
beforeAll(async () => {
  world = await startRoutesWorld(await createDatabase(inject("postgresUrl")));
  grpc = new Client(`127.0.0.1:${world.product.grpcPort}`, credentials.createInsecure());
});
afterAll(async () => {
  grpc?.close();
  await world?.close();
});

/** Number of checks, for the figures at the end. */
const checked = { routes: 0, ofRoutes: 0, cells: 0 };

/** Differences, as text: every route must have a row, every row a route, and each caller the result in its row. */
async function findWrong(
  routes: readonly string[],
  rows: Readonly<Record<string, unknown>>,
  cellsOf: (route: string) => Promise<readonly Cell[]>,
): Promise<string[]> {
  checked.ofRoutes += routes.length;
  const wrong = [
    ...routes.filter((route) => rows[route] === undefined).map((route) => `${route} has no row`),
    ...Object.keys(rows)
      .filter((row) => !routes.includes(row))
      .map((row) => `${row} is not served`),
  ];
  for (const route of routes.filter((one) => rows[one] !== undefined)) {
    const cells = await cellsOf(route);
    checked.routes += 1;
    checked.cells += cells.length;
    for (const { caller, expected, outcome } of cells) {
      if (!expected.includes(outcome))
        wrong.push(`${route} by ${caller}: ${outcome}, and not ${expected.join(" or ")}`);
    }
  }
  return wrong;
}

interface Cell {
  readonly caller: string;
  readonly expected: readonly Outcome[];
  readonly outcome: Outcome;
}

const LET_IN: readonly Outcome[] = ["done"];
/** Admitted: the request may still be invalid. */
const ANSWERED: readonly Outcome[] = ["done", "wrong"];
/** A caller without permission for a model gets that as the reason; model look-ups say that it does not exist. */
const WITHOUT_PERMISSION: readonly Outcome[] = ["denied", "wrong"];
const VALID = ["a key for another model", "a key", "another account's key", "an administrator's key"];
const VALID_BY_HTTP = new Set([...VALID, "a key as Anthropic's clients send it", "a key as Google's clients send it"]);
/** gRPC reads only `authorization`. */
const VALID_BY_GRPC = new Set([...VALID, "two keys"]);

function expectedOfKey(row: KeyRow, caller: string, valid: ReadonlySet<string>): readonly Outcome[] {
  // The contract's files exist only when the dashboard is built.
  if (row === "everybody") return ANSWERED;
  if (!valid.has(caller)) return ["unauthenticated"];
  return row === "permission" && caller === "a key for another model" ? WITHOUT_PERMISSION : LET_IN;
}

const VALID_WITHOUT_SECRET = new Set([
  "a certificate of a key",
  "a certificate of a key for another model",
  "a certificate of no key, and a key",
  "a token of a key",
  "a token of a key for another model",
]);

function expectedWithoutSecret(row: KeyRow, caller: string): readonly Outcome[] {
  if (row === "everybody") return ANSWERED;
  if (!VALID_WITHOUT_SECRET.has(caller)) return ["unauthenticated"];
  return row === "permission" && caller.endsWith("for another model") ? WITHOUT_PERMISSION : LET_IN;
}

async function keyCells(
  row: KeyRow,
  valid: ReadonlySet<string>,
  ask: (sent: RoutesWorld["keys"][string]) => Promise<Outcome>,
): Promise<Cell[]> {
  return Promise.all(
    Object.entries(world.keys).map(async ([caller, sent]) => {
      return { caller, expected: expectedOfKey(row, caller, valid), outcome: await ask(sent) };
    }),
  );
}

const NOBODY = new Set([
  "no session",
  "a text that is no session",
  "an unknown session",
  "an API key",
  "an administrator's API key",
  "an unknown administration key",
  "a session that is over",
  "a session of a disabled account",
]);

/** Callers who see only their own account. */
const STRANGERS = new Set(["another one's session", "a viewer's session", "a session of a viewing auditor"]);

function expectedOfSession({ who, fresh, person, auditor, others }: ConsoleRow, caller: string): readonly Outcome[] {
  if (person && caller === "an administrator's administration key") return ["denied"];
  if (who === "anybody") return ANSWERED;
  if (NOBODY.has(caller)) return ["unauthenticated"];
  const isOwner = caller.startsWith("an organisation owner");
  const isAdministrator = caller.startsWith("an administrator") || isOwner;
  if (who === "owner" && !isOwner) return ["denied"];
  if (who === "administrator" && !isAdministrator) return ["denied"];
  if (who === "developer" && /viewer|viewing/.test(caller)) return ["denied"];
  if (fresh && caller.endsWith("long after the password")) return ["denied"];
  if (others === undefined) return ANSWERED;
  // Calls about an existing object: only its owner and administrators see it.
  if (auditor && caller === "a session of a viewing auditor") return LET_IN;
  if (STRANGERS.has(caller)) return [others === "hidden" ? "wrong" : "denied"];
  return LET_IN;
}

/** What a member may get of a call about what the team owns. */
function expectedOfMember({ who, team }: ConsoleRow, caller: string): readonly Outcome[] {
  const isReading = team === "viewer" && who === "signed in";
  if (caller === "a viewer of the organisation") return isReading ? LET_IN : ["denied"];
  return TEAM_ROLES.findIndex((role) => role === caller) <= TEAM_ROLES.indexOf(team!) ? LET_IN : ["denied"];
}

/** The object of a call: the owner's, if it has one. */
async function messageOf(method: string, owner: ObjectOwner): Promise<object> {
  const { accountId, completionId } = owner;
  switch (method) {
    case "SessionService/SignUp":
    case "SessionService/SignIn":
      return { email: "nobody" };
    case "AccountService/Update":
      return { id: accountId, name: "The owner" };
    case "AccountService/CreateInvitation":
      return { role: "ACCOUNT_ROLE_DEVELOPER", teamId: world.team.accountId, teamRole: "TEAM_ROLE_MAINTAINER" };
    case "TeamService/ListMembers":
      return { teamId: world.team.accountId };
    case "TeamService/SetMember":
      return { teamId: world.team.accountId, accountId: world.owner.accountId, role: "TEAM_ROLE_MAINTAINER" };
    case "TeamService/RemoveMember":
      // A person who is in no team.
      return { teamId: world.team.accountId, accountId: DEFAULT_ACCOUNT_ID };
    case "KeyService/Transfer":
      return { id: await owner.newKeyId(), accountId: world.receiverId };
    case "KeyService/Create":
      return { accountId, name: "made by the matrix" };
    case "KeyService/Update":
      return { id: await owner.newKeyId(), name: "changed by the matrix" };
    case "KeyService/Get":
    case "KeyService/Rotate":
    case "KeyService/Revoke":
      return { id: await owner.newKeyId(), ...(method.endsWith("Rotate") && { grace: "ROTATION_GRACE_NONE" }) };
    case "RoutingService/SetCredential":
      return { accountId, provider: RELEASED, secret: "a-key-of-the-account" };
    case "RoutingService/RemoveCredential":
      return { accountId, provider: RELEASED };
    case "RoutingService/SetAliases":
      return { accountId, aliases: [{ name: "gpt-*", model: MODEL }] };
    case "AttributionService/ListBudgets":
      return { keyId: await owner.newBudgetKeyId(), holder: "BUDGET_HOLDER_END_USER" };
    case "AttributionService/SetBudget":
      return {
        keyId: await owner.newBudgetKeyId(),
        holder: "BUDGET_HOLDER_END_USER",
        name: "ann",
        budgetMicroUsd: "7",
      };
    case "StopService/Create":
      return { accountId, kind: "STOP_KIND_SESSION", value: "stopped by the matrix" };
    case "StopService/Remove":
      return { accountId, id: "unknown" };
    case "RequestService/Get":
    case "RequestService/GetContent":
      return { id: completionId };
    case "RequestService/SaveFilter":
      return { filter: { name: "saved by the matrix", query: "outcome=failed" } };
    case "RequestService/RemoveSavedFilter":
      return { name: "saved by the matrix" };
    case "AlertService/Acknowledge":
      return { id: owner.alertId };
    case "UsageService/Summarize":
    case "UsageService/GetLatency":
    case "RequestService/List":
    case "RequestService/Export":
    case "RequestService/Watch":
    case "AuditService/List":
    case "AuditService/Export":
      return { filter: { accountId } };
    case "KeyService/List":
    case "StopService/List":
    case "RoutingService/GetRouting":
    case "OverviewService/Get":
    case "UsageService/GetSpending":
      return { accountId };
    default:
      return {};
  }
}

describe("every route of the running server", () => {
  it("by HTTP with a key has a row, and admits exactly the permitted callers", async () => {
    const cellsOf = (route: string) =>
      keyCells(HTTP_ROWS[route]!, VALID_BY_HTTP, (sent) => askHttp(world.product, route, sent));
    expect(await findWrong(ROUTES, HTTP_ROWS, cellsOf)).toEqual([]);
  });

  it("by gRPC, as listed by reflection, has a row, and admits exactly the permitted callers", async () => {
    const paths = await reflectedPaths();
    const cellsOf = (path: string) => keyCells(GRPC_ROWS[path]!, VALID_BY_GRPC, (sent) => askGrpc(grpc, path, sent));
    expect(await findWrong(paths, GRPC_ROWS, cellsOf)).toEqual([]);
  });

  it.each([
    ["HTTP/1.1", false],
    ["HTTP/2", true],
  ])(
    "admits certificates and tokens by %s and gRPC on one port as it admits the keys for which they stand",
    async (_, allowH2) => {
      const { secure, authority, certified } = world;
      const callers = Object.entries(certified).map(([caller, { pair, sent }]) => {
        const dispatcher = new Agent({ allowH2, connect: { ca: authority.cert, ...pair } });
        const send: Send = (url, request) => fetchAs(url, { ...request, dispatcher });
        return { caller, sent, send, dispatcher, client: tlsGrpcClient(secure.grpcPort, { authority, pair }) };
      });
      const cellsOf = (row: KeyRow, ask: (caller: (typeof callers)[number]) => Promise<Outcome>) =>
        Promise.all(
          callers.map(async (one) => {
            const { caller } = one;
            return { caller, expected: expectedWithoutSecret(row, caller), outcome: await ask(one) };
          }),
        );
      const byHttp = await findWrong(ROUTES, HTTP_ROWS, (route) =>
        cellsOf(HTTP_ROWS[route]!, ({ send, sent }) => askHttp({ url: secure.url, send }, route, sent)),
      );
      const byGrpc = await findWrong(await reflectedPaths(), GRPC_ROWS, (path) =>
        cellsOf(GRPC_ROWS[path]!, ({ client, sent }) => askGrpc(client, path, sent)),
      );
      for (const { client, dispatcher } of callers) {
        client.close();
        await dispatcher.close();
      }
      expect([...byHttp, ...byGrpc]).toEqual([]);
    },
  );

  it("on the operations port has a row, is public, and contains no secrets", async () => {
    const { product, keys } = world;
    const secrets = Object.values(keys).flatMap((sent) => Object.values(sent));
    const cellsOf = (path: string) =>
      keyCells(OPERATIONS_ROWS[path]!, VALID_BY_HTTP, async (headers) => {
        const response = await fetch(product.operationsUrl + path, { headers });
        const text = await response.text();
        const isTold = secrets.some((secret) => text.includes(secret.replace(/^\w+[ =]/, "")));
        return isTold ? "a secret" : httpOutcome(response.status);
      });
    expect(await findWrong(OPERATIONS_PATHS, OPERATIONS_ROWS, cellsOf)).toEqual([]);
    for (const path of [...ROUTES.map((route) => route.split(" ")[1]!), ...PAGE_PATHS, ...POLICIES.keys()]) {
      if ((OPERATIONS_PATHS as readonly string[]).includes(path)) continue;
      expect(`${path} ${(await fetch(product.operationsUrl + path)).status}`).toBe(`${path} 404`);
    }
  });

  it(
    "by the dashboard's services has a row, and admits exactly the permitted callers",
    { timeout: timeLimit(180, 180) },
    async () => {
      const streams = new Map([...POLICIES].map(([path, policy]) => [methodOf(path), policy.streams] as const));
      const cellsOf = async (method: string): Promise<Cell[]> => {
        const cells: Cell[] = [];
        for (const [caller, open] of Object.entries(world.sessions)) {
          const asking = {
            message: await messageOf(method, world.owner),
            streams: streams.get(method)!,
            credentials: await open(),
          };
          const expected = expectedOfSession(CONSOLE_ROWS[method]!, caller);
          cells.push({ caller, expected, outcome: await askConsole(world, method, asking) });
        }
        return cells;
      };
      expect(await findWrong([...streams.keys()], CONSOLE_ROWS, cellsOf)).toEqual([]);
    },
  );

  it("by the dashboard's services about what a team owns admits its members by their roles", async () => {
    const streams = new Map([...POLICIES].map(([path, policy]) => [methodOf(path), policy.streams] as const));
    const ofTeams = Object.fromEntries(Object.entries(CONSOLE_ROWS).filter(([, row]) => row.others !== undefined));
    const cellsOf = async (method: string): Promise<Cell[]> => {
      const cells: Cell[] = [];
      for (const [caller, open] of Object.entries(world.memberSessions)) {
        const message = await messageOf(method, world.team);
        const asking = { message, streams: streams.get(method)!, credentials: await open() };
        const expected = expectedOfMember(ofTeams[method]!, caller);
        cells.push({ caller, expected, outcome: await askConsole(world, method, asking) });
      }
      return cells;
    };
    expect(await findWrong(Object.keys(ofTeams), ofTeams, cellsOf)).toEqual([]);
  });

  it("is one of these: other methods and similar paths are refused, with any key and session", async () => {
    const { product, keys, sessions } = world;
    const all = { ...keys["an administrator's key"], ...(await sessions["an administrator's session"]!()) };
    const wrong: string[] = [];
    const OTHERS = { GET: 404, POST: 404, PUT: 404, PATCH: 404, DELETE: 404 };
    const expectStatus = async (method: string, path: string, statuses: readonly number[]): Promise<void> => {
      const response = await fetch(product.url + path, { method, headers: all, redirect: "manual" });
      await response.body?.cancel();
      if (!statuses.includes(response.status)) wrong.push(`${method} ${path}: ${response.status}`);
    };
    for (const path of new Set(ROUTES.map((route) => route.split(" ")[1]!))) {
      // The dashboard has a page for each model.
      const others = path.startsWith("/models/") ? { GET: 200, PUT: 405, PATCH: 405, DELETE: 405 } : OTHERS;
      for (const [method, status] of Object.entries(others))
        if (!ROUTES.includes(`${method} ${path}`)) await expectStatus(method, path.replace(/\{.*\}/, "x"), [status]);
    }
    for (const path of POLICIES.keys()) await expectStatus("GET", path, [400]);
    for (const path of [
      "/v1/chat/completions/",
      "/V1/models",
      "//v1/models",
      "/v1",
      "/metrics",
      "/parley.v1.KeyService/",
    ])
      await expectStatus("GET", path, [404]);
    for (const path of ["/parley.v1.CompletionService/create", "/grpc.health.v1.Health/Check"])
      await expectStatus("POST", path, [404]);
    expect(wrong).toEqual([]);
  });

  it("that returns a page returns the same to all callers, without personal data", async () => {
    const { product, sessions } = world;
    const differing: string[] = [];
    for (const path of [...PAGE_PATHS, requestPath("chatcmpl-x")]) {
      const texts = new Set<string>();
      for (const open of Object.values(sessions)) {
        const response = await fetch(product.url + path, { headers: await open() });
        texts.add(`${response.status} ${await response.text()}`);
        checked.cells += 1;
      }
      checked.routes += 1;
      checked.ofRoutes += 1;
      if (texts.size !== 1) differing.push(path);
    }
    expect(differing).toEqual([]);
  });

  it("was tested", () => {
    expect(checked.ofRoutes).toBeGreaterThan(0);
    const percent = Math.floor((100 * checked.routes) / checked.ofRoutes);
    figure({ name: "routes and RPCs in the policy matrix", value: percent, unit: "%", atLeast: 100 });
    figure({ name: "calls by every kind of caller in it", value: checked.cells, unit: "", atLeast: 700 });
  });
});

const methodOf = (path: string): string => path.slice("/parley.console.v1.".length);

/** Lists all methods from the server's reflection, including reflection itself under both of its names. */
async function reflectedPaths(): Promise<string[]> {
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${world.product.grpcPort}` });
  const client = createClient(ServerReflection, transport);
  const ask = async (messageRequest: { case: "listServices" | "fileContainingSymbol"; value: string }) => {
    async function* question() {
      yield { messageRequest };
    }
    for await (const { messageResponse } of client.serverReflectionInfo(question())) return messageResponse;
    throw new Error("reflection sent no response");
  };
  const listed = await ask({ case: "listServices", value: "*" });
  if (listed.case !== "listServicesResponse") throw new Error("reflection lists no services");
  const paths: string[] = [];
  for (const { name } of listed.value.service) {
    const found = await ask({ case: "fileContainingSymbol", value: name });
    if (found.case !== "fileDescriptorResponse") throw new Error(`reflection does not know ${name}`);
    const files = found.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    const service = files.flatMap((file) => file.service.filter((one) => `${file.package}.${one.name}` === name))[0];
    paths.push(...service!.method.map((method) => `/${name}/${method.name}`));
  }
  const reflection = ["v1", "v1alpha"].map(
    (version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
  );
  return [...paths, ...reflection];
}
