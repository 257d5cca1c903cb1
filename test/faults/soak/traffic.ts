import { toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import type { Dice } from "../../../src/simulator/dice.ts";
import { toRequest } from "../../entrances/scenarios/ask.ts";
import { CHAT } from "../../entrances/scenarios/callers/chat.ts";
import { callGrpc } from "../../entrances/scenarios/grpc-client.ts";
import { callHttp } from "../../entrances/scenarios/http-client.ts";
import type { Reply, RunningCall } from "../../entrances/scenarios/reply.ts";
import type { Product } from "../../support/product.ts";
import type { SoakKey } from "./keys.ts";
import { type PlannedCall, planCall } from "./plan.ts";

/** One completion as its caller saw it. */
export interface SeenCompletion {
  readonly requestId: string;
  readonly planned: PlannedCall;
  /** Whether its caller cancelled. */
  readonly left: boolean;
  /** Undefined after a cancellation or a broken connection. */
  readonly reply: Reply | undefined;
  /** Description of an unexpected result. */
  readonly fault: string | undefined;
}

/** Completions at a constant rate, independent of their results. */
export interface SoakTraffic {
  readonly seen: readonly SeenCompletion[];
  /** Sends no more requests; resolves when all have ended. */
  stop(): Promise<void>;
}

export interface SoakTrafficOptions {
  readonly product: Product;
  readonly perSecond: number;
  readonly dice: Dice;
  /** Prefix of all request IDs. */
  readonly name: string;
  /** Returns the key for the next call; it stays in use until the call has ended. */
  readonly takeKey: () => SoakKey;
}

/** Starts the traffic. */
export function startSoakTraffic({ product, perSecond, dice, name, takeKey }: SoakTrafficOptions): SoakTraffic {
  const grpc = new Client(`127.0.0.1:${product.grpcPort}`, credentials.createInsecure());
  const seen: SeenCompletion[] = [];
  const underWay = new Set<Promise<void>>();
  let count = 0;
  const timer = setInterval(() => {
    const number = count++;
    const key = takeKey();
    const done = complete(planCall(dice, number), { product, grpc, key, requestId: `${name}-${number}` })
      .then((one) => void seen.push(one))
      .finally(() => {
        key.release();
        underWay.delete(done);
      });
    underWay.add(done);
  }, 1_000 / perSecond);
  return {
    seen,
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
      grpc.close();
    },
  };
}

interface Asking {
  readonly product: Product;
  readonly grpc: Client;
  readonly key: SoakKey;
  readonly requestId: string;
}

async function complete(planned: PlannedCall, asking: Asking): Promise<SeenCompletion> {
  const { requestId } = asking;
  const call = begin(planned, asking);
  let left = false;
  const timer =
    planned.leavesAfterMs === undefined
      ? undefined
      : setTimeout(() => {
          left = true;
          call.leave();
        }, planned.leavesAfterMs);
  try {
    const reply = await call.reply;
    return {
      requestId,
      planned,
      left,
      reply: left ? undefined : reply,
      fault: left ? undefined : judge(planned, reply),
    };
  } catch (error) {
    return { requestId, planned, left, reply: undefined, fault: left ? undefined : `no answer: ${String(error)}` };
  } finally {
    clearTimeout(timer);
    if (planned.entrance === "http") call.leave();
  }
}

function begin({ entrance, mode, ask }: PlannedCall, { product, grpc, key, requestId }: Asking): RunningCall {
  const request = toRequest(ask);
  const facts = { authorization: `Bearer ${key.secret}`, "x-request-id": requestId };
  if (entrance === "http") {
    return callHttp({
      port: product.httpPort,
      caller: CHAT,
      path: CHAT.path(request.model, mode),
      mode,
      headers: facts,
      body: JSON.stringify(CHAT.write(request, mode)),
    });
  }
  const bytes = Buffer.from(toBinary(CompletionRequestSchema, request));
  return callGrpc({ client: grpc, mode, bytes, metadata: facts, deadlineMs: undefined });
}

/** Returns what is unexpected in a reply, if anything. */
function judge({ expects }: PlannedCall, reply: Reply): string | undefined {
  const { complete: isComplete, failure, text, pictures, usage } = reply;
  if (isComplete === (failure !== undefined)) return "neither complete nor failed, or both";
  if (failure !== undefined) return expects === "either" ? undefined : `failed: ${failure.status} ${failure.message}`;
  if (usage === undefined) return "complete, and without its usage";
  if (expects === "picture") return pictures.length > 0 ? undefined : "complete, and without a picture";
  return text === "" ? "complete, and without a text" : undefined;
}
