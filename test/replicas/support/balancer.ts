import { setTimeout as delay } from "node:timers/promises";

/** Chooses among replicas as a load balancer does: in turn, and only those that said they were ready when last asked. */
export interface Balancer {
  readonly pick: () => string;
  stop(): Promise<void>;
}

const ASK_EVERY_MS = 50;
/** Less than what a notice leaves, with room for a busy machine. */
const PATIENCE_MS = 400;

/** Starts asking the replicas' `/readyz`. `urls` gives their addresses as they are now. */
export function startBalancer(urls: () => readonly string[]): Balancer {
  let ready: readonly string[] = urls();
  let turn = 0;
  const stopping = new AbortController();
  const isReady = async (url: string): Promise<boolean> => {
    try {
      const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PATIENCE_MS) });
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false;
    }
  };
  const ask = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const asked = urls();
      const answers = await Promise.all(asked.map(isReady));
      ready = asked.filter((_, index) => answers[index]);
      await delay(ASK_EVERY_MS);
    }
  };
  const asking = ask();
  return {
    pick() {
      const among = ready.length > 0 ? ready : urls();
      return among[turn++ % among.length]!;
    },
    async stop() {
      stopping.abort();
      await asking;
    },
  };
}
