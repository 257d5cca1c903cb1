import { useEffect, useEffectEvent } from "react";

/** Interval between probes. */
const PROBE_MS = 2_000;

/**
 * Calls `onReconnect` after each successful probe while `isLost`. Probes `/healthz` instead of repeating queries, so
 * that the page does not flicker while Parley is unreachable.
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

/** Whether Parley is reachable now. */
export async function isReachable(signal: AbortSignal): Promise<boolean> {
  try {
    const timeout = AbortSignal.timeout(5 * PROBE_MS);
    return (await fetch("/healthz", { cache: "no-store", signal: AbortSignal.any([signal, timeout]) })).ok;
  } catch {
    return false;
  }
}
