import { useEffect, useEffectEvent } from "react";

/** How often Parley is asked whether it can be reached again. */
const PROBE_MS = 2_000;

/**
 * Calls back whenever Parley answers, as long as the caller is lost. Probes `/healthz`, so that nothing that is shown flickers
 * while there is no answer.
 */
export function useReconnect(isLost: boolean, onReconnect: () => void): void {
  const reconnected = useEffectEvent(onReconnect);
  useEffect(() => {
    if (!isLost) return undefined;
    const stop = new AbortController();
    const probe = async (): Promise<void> => {
      if (await isReachable(stop.signal)) reconnected();
      if (!stop.signal.aborted) timer = setTimeout(() => void probe(), PROBE_MS);
    };
    let timer = setTimeout(() => void probe(), PROBE_MS);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [isLost]);
}

/** Whether Parley answers now. */
export async function isReachable(signal: AbortSignal): Promise<boolean> {
  try {
    const timeout = AbortSignal.timeout(5 * PROBE_MS);
    return (await fetch("/healthz", { cache: "no-store", signal: AbortSignal.any([signal, timeout]) })).ok;
  } catch {
    return false;
  }
}
