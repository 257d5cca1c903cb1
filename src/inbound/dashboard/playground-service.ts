import type { ServiceImpl } from "@connectrpc/connect";
import type { PlaygroundService } from "../../../gen/parley/console/v1/playground_pb.js";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { KeyStore } from "../../access/key-store.ts";
import type { Clock } from "../../core/clock.ts";
import type { Completions } from "../../core/completions.ts";
import type { Traces } from "../../core/trace.ts";
import { permitsIn } from "../../access/permissions.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import { addFields } from "../attribution.ts";
import { newCompletionId } from "../calls.ts";
import { toConnectError } from "../error-details.ts";
import { toAsyncIterable } from "../to-async-iterable.ts";
import { accountsInView, signedInOf } from "./call.ts";
import { findPrincipal } from "./key-principal.ts";
import { type Streams, withHeartbeat } from "./streams.ts";

/** Ports of the playground. */
export interface PlaygroundPorts {
  readonly keys: Pick<KeyStore, "findWithHash">;
  readonly completions: Pick<Completions, "stream">;
  readonly streams: Streams;
  readonly clock: Clock;
  /** Undefined where nothing is traced. */
  readonly traces?: Traces | undefined;
}

const TARGET = "parley.console.v1.PlaygroundService/Stream";

/** A heartbeat, in place of chunks. */
const SIGN: readonly CompletionChunk[] = [];

/** Completions in the dashboard, as a client with the same key would get them. */
export function createPlaygroundService({
  keys,
  completions,
  streams,
  clock,
  traces,
}: PlaygroundPorts): ServiceImpl<typeof PlaygroundService> {
  return {
    stream({ keyId, completion: request }, context) {
      let payerId: string | undefined;
      return streams.run(
        context,
        async function* ({ requestId, arrivedMs, open }) {
          const { signal, expiresMs } = open;
          const principal = await findPrincipal(
            { keys, clock },
            keyId,
            accountsInView(signedInOf(context), "playground.use"),
          );
          payerId = principal.accountId;
          open.authenticated(principal);
          if (request === undefined) throw invalidField("completion", "is required");
          const completionId = newCompletionId();
          const own = {
            signal: leaving(signal),
            expiresMs,
            arrivedMs,
            permitted: open.permitted,
            share: open,
            entrance: "console",
            trace: traces?.begin({ caller: undefined, arrivedMs, target: TARGET }),
          } as const;
          // The headers are the browser's, so the attribution is read from the request's fields only.
          const attribution = addFields(undefined, request);
          const call = { principal, requestId, completionId, attribution, ...own };
          try {
            const answer = toAsyncIterable(
              (emit) => completions.stream(request, { ...call, admitted: () => undefined }, emit),
              open,
            );
            for await (const batch of withHeartbeat(answer, { clock, sign: SIGN })) {
              if (batch === SIGN) yield {};
              for (const chunk of batch) yield { chunk };
            }
          } catch (reason) {
            // Translated here, because it is recorded already, as a completion and not as a refusal.
            throw toConnectError(Failure.from(signal.aborted ? signal.reason : reason), requestId);
          }
        },
        (now) => payerId === undefined || permitsIn(now, "playground.use", payerId),
      );
    },
  };
}

/** Aborts with `signal`. The end of the session counts as a caller that left, not as a failure of the model. */
function leaving(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const leave = (): void => {
    const failure = Failure.from(signal.reason);
    const isOfSession = failure.code === "unauthenticated" || failure.code === "permission_denied";
    controller.abort(isOfSession ? new Failure("cancelled", failure.message) : failure);
  };
  if (signal.aborted) leave();
  else signal.addEventListener("abort", leave, { once: true });
  return controller.signal;
}
