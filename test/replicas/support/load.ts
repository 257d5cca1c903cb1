import { Agent, request } from "undici";
import { MODEL } from "./deployment.ts";

/** Completions under load, as seen by the callers. */
export interface Load {
  /** IDs of the completions whose end was received: the whole body, or `[DONE]`. */
  readonly ended: readonly string[];
  /** When each of these ends was received, by `performance.now()`. */
  readonly endsMs: readonly number[];
  /** Failures as text; `pick` has to avoid addresses that refuse connections. */
  readonly failures: readonly string[];
  /** Sends no more requests; resolves when those in flight have ended. */
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly callers: number;
  readonly key: string;
  /** Returns the address for the next request; called again after a refused connection. */
  readonly pick: () => string;
}

/** Maximum addresses tried after refused connections. */
const MAX_TRIES = 20;

/** Callers that send one completion after the other, alternately whole and streamed, each on a new connection. */
export function startLoad({ callers, key, pick }: LoadOptions): Load {
  const agent = new Agent({ pipelining: 0, connections: null });
  const ended: string[] = [];
  const endsMs: number[] = [];
  const failures: string[] = [];
  const state = { isStopped: false };

  const send = async (stream: boolean) => {
    for (let tries = 0; ; tries++) {
      try {
        return await request(`${pick()}/v1/chat/completions`, {
          dispatcher: agent,
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: MODEL, stream, messages: [{ role: "user", content: "hi" }] }),
        });
      } catch (error) {
        // Retried as by a load balancer: nothing was sent, so nothing can be executed twice.
        if ((error as NodeJS.ErrnoException).code !== "ECONNREFUSED" || tries >= MAX_TRIES) throw error;
      }
    }
  };

  const complete = async (stream: boolean): Promise<void> => {
    const { statusCode, body } = await send(stream);
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`status ${statusCode}: ${text.slice(0, 200)}`);
    if (stream && !text.endsWith("data: [DONE]\n\n")) throw new Error("a stream without [DONE]");
    const first = stream ? text.slice("data: ".length, text.indexOf("\n")) : text;
    ended.push((JSON.parse(first) as { id: string }).id);
    endsMs.push(performance.now());
  };

  const loops = Array.from({ length: callers }, async (_, caller) => {
    for (let count = caller; !state.isStopped; count++) {
      await complete(count % 2 === 0).catch((error: unknown) => failures.push(String(error)));
    }
  });

  return {
    ended,
    endsMs,
    failures,
    async stop() {
      state.isStopped = true;
      await Promise.all(loops);
      await agent.destroy();
    },
  };
}
