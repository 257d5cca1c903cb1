import type { RequestListener } from "node:http";

/** How a token service gets stuck: it answers nothing, only the beginning of an answer, or an answer without an end. */
export const STUCK = ["silent", "half", "endless"] as const;

/** A server that is stuck. */
export interface Stuck {
  readonly listener: RequestListener;
  /** Requests in all. */
  asked: number;
  /** Requests whose connection is open. */
  open: number;
  sentBytes: number;
}

const PIECE = Buffer.alloc(256 * 1024, "a");

export function stuck(how: (typeof STUCK)[number]): Stuck {
  const state: Stuck = {
    asked: 0,
    open: 0,
    sentBytes: 0,
    listener(request, response) {
      state.asked += 1;
      state.open += 1;
      response.on("close", () => (state.open -= 1)).on("error", () => undefined);
      request.resume();
      if (how === "silent") return;
      response.writeHead(200, { "content-type": "application/json" }).write('{"access_token":"');
      if (how === "half") return;
      const send = (): void => {
        let hasRoom = !response.destroyed;
        while (hasRoom) {
          state.sentBytes += PIECE.length;
          hasRoom = response.write(PIECE);
        }
        if (!response.destroyed) response.once("drain", send);
      };
      send();
    },
  };
  return state;
}
