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

/** Callers of all kinds of one product. */
export interface Swarm {
  /** One completion, from its caller's first byte to its last. */
  ask(plan: CallerPlan): Promise<Asked>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** A caller, and what it saw. */
export type Asked = Pick<Case, "plan" | "reply">;

/** No completion of these tests takes that long; one that does hangs. */
const PATIENCE_MS = 30_000;

/** Opens the clients. */
export function openSwarm(product: Product, upstream: FaultServer): Swarm {
  const dispatcher = new Agent({ connections: 64 });
  const door = { url: product.url, port: product.httpPort, key: product.firstKey, dispatcher };
  const grpcUrl = `http://127.0.0.1:${product.grpcPort}`;
  const grpc = new Client(`127.0.0.1:${product.grpcPort}`, credentials.createInsecure());
  const sessions = new Http2SessionManager(grpcUrl);
  const overGrpc = createGrpcTransport({ baseUrl: grpcUrl, sessionManager: sessions });
  const agent = new HttpAgent({ keepAlive: true });
  const overConnect = createConnectTransport({ baseUrl: product.url, httpVersion: "1.1", nodeOptions: { agent } });
  const clients: Readonly<Record<ClientName, (asking: Asking) => Promise<Reply>>> = {
    openai: (asking) => askOpenAi(door, asking),
    undici: (asking) => askUndici(door, asking),
    raw: (asking) => askRaw(door, asking),
    "grpc-js": (asking) => askGrpc(grpc, door.key, asking),
    "connect-grpc": (asking) => askConnect(overGrpc, door.key, asking),
    connect: (asking) => askConnect(overConnect, door.key, asking),
  };
  return {
    async ask(plan) {
      const patience = delay(PATIENCE_MS, undefined, { ref: false }).then((): Reply => {
        return { end: "broken", text: "", breaches: [`no end within ${PATIENCE_MS} ms`] };
      });
      const reply = await Promise.race([clients[plan.client](behave(plan, upstream)), patience]);
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

/** Makes a caller leave and rest as its plan says. */
function behave(plan: CallerPlan, upstream: FaultServer): Asking {
  const { leaving, openMs } = plan;
  const controller = new AbortController();
  const leave = (): void => controller.abort(new Error("the caller leaves"));
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
