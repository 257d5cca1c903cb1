import { createCookies } from "../../../src/inbound/dashboard/cookies.ts";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { RequestService } from "../../../gen/parley/console/v1/request_pb.js";
import { signUp } from "../../../src/access/sign-up.ts";
import { callOf } from "../../../src/inbound/dashboard/call.ts";
import { createCsrfCheck } from "../../../src/inbound/dashboard/csrf.ts";
import { entries } from "../../../src/inbound/dashboard/policy.ts";
import { ReportTurns } from "../../../src/inbound/dashboard/report-turns.ts";
import { createRpcs } from "../../../src/inbound/dashboard/rpcs.ts";
import { Streams } from "../../../src/inbound/dashboard/streams.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { Calls } from "../../../src/inbound/calls.ts";
import { startHttpServer } from "../../../src/inbound/http/server.ts";
import { PASSWORD, setUpAccess } from "../../access/set-up.ts";
import { roomyAdmission } from "../../support/admission.ts";
import { idleServices } from "../../support/idle-services.ts";

/** A service whose stream goes on until it is ended, behind the real entrance. */
export async function startEndless() {
  const access = setUpAccess();
  const { id } = await signUp(access, { email: "ada@example.com", password: PASSWORD }, { network: "192.0.2.0/24" });
  const calls = new Calls(systemClock);
  let open = 0;
  const streams = new Streams(access.clock);
  const cookies = createCookies(false, access.signIn);
  const rpcs = createRpcs(
    {
      access,
      admission: roomyAdmission(systemClock),
      calls,
      refused: () => undefined,
      csrf: createCsrfCheck(undefined),
      findNetwork: () => "192.0.2.0/24",
      reports: new ReportTurns("sqlite"),
      cookies: { ...cookies, session: { ...cookies.session, read: () => id } },
    },
    {
      policies: new Map(
        entries({ watch: RequestService.method.watch }, { watch: { who: "signed in", endsWithDrain: true } }),
      ),
      addRoutes: (router) =>
        router.service(RequestService, {
          watch: (_, context) =>
            streams.run(
              context,
              async function* () {
                const { signal } = callOf(context).open;
                open += 1;
                try {
                  yield {};
                  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
                } finally {
                  open -= 1;
                }
              },
              () => true,
            ),
        }),
    },
  );
  const server = await startHttpServer(idleServices({ calls }), {
    host: "127.0.0.1",
    port: 0,
    corsOrigins: [],
    console: {
      handles: () => true,
      handleMissing: () => false,
      handle: (request, response, requestId) => void rpcs.answer({ request, response, path: request.url!, requestId }),
      drain: () => rpcs.drain(),
    },
  });
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${server.port}`, httpVersion: "1.1" });
  return {
    calls,
    open: () => open,
    watch: () => createClient(RequestService, transport).watch({})[Symbol.asyncIterator](),
    stop: () => rpcs.drain(),
    drain: () => server.drain(),
  };
}
