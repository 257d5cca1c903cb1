import { credentials, Client } from "@grpc/grpc-js";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { Agent as HttpAgent } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { Agent } from "undici";
import type { FaultServer } from "../../support/faults/fault-server.ts";
import type { Product } from "../../support/product.ts";
import type { CallerPlan, ClientName } from "./caller-plan.ts";
import { askConnect, askGrpc } from "./grpc-callers.ts";
import { type Asking, askOpenAi, askRaw, askUndici } from "./http-callers.ts";
import type { Case } from "./judge.ts";
import type { Reply } from "./reply.ts";

/** Clients of all kinds for one product. */
export interface Clients {
  /** Runs one completion. */
  ask(plan: CallerPlan): Promise<Asked>;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** A caller, and its reply. */
export type Asked = Pick<Case, "plan" | "reply">;

/** Longer than every completion of these tests, so that a hanging one is detected. */
const TIMEOUT_MS = 30_000;

/** Creates the clients. */
export function openClients(product: Product, upstream: FaultServer): Clients {
  const dispatcher = new Agent({ connections: 64 });
  const target = { url: product.url, port: product.httpPort, key: product.firstKey, dispatcher };
  const grpcUrl = `http://127.0.0.1:${product.grpcPort}`;
  const grpc = new Client(`127.0.0.1:${product.grpcPort}`, credentials.createInsecure());
  const sessions = new Http2SessionManager(grpcUrl);
  const overGrpc = createGrpcTransport({ baseUrl: grpcUrl, sessionManager: sessions });
  const agent = new HttpAgent({ keepAlive: true });
  const overConnect = createConnectTransport({ baseUrl: product.url, httpVersion: "1.1", nodeOptions: { agent } });
  const clients: Readonly<Record<ClientName, (asking: Asking) => Promise<Reply>>> = {
    openai: (asking) => askOpenAi(target, asking),
    undici: (asking) => askUndici(target, asking),
    raw: (asking) => askRaw(target, asking),
    "grpc-js": (asking) => askGrpc(grpc, target.key, asking),
    "connect-grpc": (asking) => askConnect(overGrpc, target.key, asking),
    connect: (asking) => askConnect(overConnect, target.key, asking),
  };
  return {
    async ask(plan) {
      const timeout = delay(TIMEOUT_MS, undefined, { ref: false }).then((): Reply => {
        return { end: "broken", text: "", breaches: [`no end within ${TIMEOUT_MS} ms`] };
      });
      const reply = await Promise.race([clients[plan.client](behave(plan, upstream)), timeout]);
      return { plan, reply };
    },
    async close() {
      await dispatcher.destroy();
      grpc.close();
      sessions.abort();
      agent.destroy();
    },
  };
}

/** Cancels and pauses according to the plan. */
function behave(plan: CallerPlan, upstream: FaultServer): Asking {
  const { leaving, openMs } = plan;
  const controller = new AbortController();
  const leave = (): void => controller.abort(new Error("the caller cancels"));
  if (leaving?.when === "after") void delay(leaving.ms).then(leave);
  if (leaving?.when === "called") void upstream.called(plan.request).then(leave);
  const read = { pieces: 0, bytes: 0 };
  return {
    plan,
    signal: controller.signal,
    async took({ pieces = 0, bytes = 0 }) {
      read.pieces += pieces;
      read.bytes += bytes;
      if (leaving?.when === "pieces" && read.pieces >= leaving.count) leave();
      if (leaving?.when === "bytes" && read.bytes >= leaving.count) leave();
      if (openMs !== undefined && !controller.signal.aborted) await delay(openMs);
    },
  };
}
