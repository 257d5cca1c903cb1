import { setTimeout as delay } from "node:timers/promises";

/** A round-robin load balancer with health checks: uses only replicas that were ready in the last check. */
export interface Balancer {
  readonly pick: () => string;
  stop(): Promise<void>;
}

const ASK_EVERY_MS = 50;
/** Interval of the checks, shorter than the shutdown delay. */
const TIMEOUT_MS = 400;

/** Starts checking the replicas' `/readyz`. `urls` returns their current addresses. */
export function startBalancer(urls: () => readonly string[]): Balancer {
  let ready: readonly string[] = urls();
  let turn = 0;
  const stopping = new AbortController();
  const isReady = async (url: string): Promise<boolean> => {
    try {
      const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
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
