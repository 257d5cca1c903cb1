import { Agent, request } from "undici";
import { MODEL } from "./deployment.ts";

/** Completions under load, as their callers saw them. */
export interface Load {
  /** The IDs of the completions whose end was seen: the whole body, or `[DONE]`. */
  readonly ended: readonly string[];
  /** What went wrong, in words; what a connection that is refused means is for `pick` to avoid. */
  readonly failures: readonly string[];
  /** Asks nothing more; resolves when what is under way has ended. */
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly callers: number;
  readonly key: string;
  /** The address for the next request; it is asked again when nobody listens there. */
  readonly pick: () => string;
}

/** How often another address is tried when nobody listens at one. */
const MAX_TRIES = 20;

/** Callers that ask one completion after the other, whole and streamed in turn, each on a connection of its own. */
export function startLoad({ callers, key, pick }: LoadOptions): Load {
  const agent = new Agent({ pipelining: 0, connections: null });
  const ended: string[] = [];
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
        // As a balancer does: nothing was sent, so nothing can be done twice.
        if ((error as NodeJS.ErrnoException).code !== "ECONNREFUSED" || tries >= MAX_TRIES) throw error;
      }
    }
  };

  const complete = async (stream: boolean): Promise<void> => {
    const { statusCode, body } = await send(stream);
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`status ${statusCode}: ${text.slice(0, 200)}`);
    if (stream && !text.endsWith("data: [DONE]\n\n")) throw new Error("a stream without its end");
    const first = stream ? text.slice("data: ".length, text.indexOf("\n")) : text;
    ended.push((JSON.parse(first) as { id: string }).id);
  };

  const loops = Array.from({ length: callers }, async (_, caller) => {
    for (let count = caller; !state.isStopped; count++) {
      await complete(count % 2 === 0).catch((error: unknown) => failures.push(String(error)));
    }
  });

  return {
    ended,
    failures,
    async stop() {
      state.isStopped = true;
      await Promise.all(loops);
      await agent.destroy();
    },
  };
}
