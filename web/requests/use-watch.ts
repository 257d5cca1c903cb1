import { useEffect, useEffectEvent, useState } from "react";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { isTransient } from "../api/failure.ts";
import { type LogFilter, requests, toFilterMessage } from "../api/requests.ts";

/** How long nothing may come: the server shows a sign of life every ten seconds. */
const SILENCE_MS = 30_000;
const RETRY_MS = [1_000, 10_000] as const;

/** How watching goes: an error is one that trying again does not mend. */
export type WatchState = "off" | "connecting" | "live" | "interrupted" | { readonly error: unknown };

interface Watcher {
  /** From now on nothing is missed. `refused` were turned away before, and are in no list. */
  readonly onBegin: (refused: readonly LoggedRequest[]) => void;
  readonly onBatch: (batch: readonly LoggedRequest[], skipped: number) => void;
}

/** Watches the requests that end, and again when that was interrupted. */
export function useWatch(filter: LogFilter, isOn: boolean, watcher: Watcher): WatchState {
  const [state, setState] = useState<WatchState>("connecting");
  const onBegin = useEffectEvent(watcher.onBegin);
  const onBatch = useEffectEvent(watcher.onBatch);
  useEffect(() => {
    if (!isOn) return;
    const controller = new AbortController();
    void follow(filter, controller.signal, {
      onState: (next) => void (controller.signal.aborted || setState(next)),
      onBegin: (refused) => onBegin(refused),
      onBatch: (batch, skipped) => onBatch(batch, skipped),
    });
    return () => {
      controller.abort();
      setState("connecting");
    };
  }, [filter, isOn]);
  return isOn ? state : "off";
}

async function follow(
  filter: LogFilter,
  signal: AbortSignal,
  { onState, onBegin, onBatch }: Watcher & { readonly onState: (state: WatchState) => void },
): Promise<void> {
  let waitMs: number = RETRY_MS[0];
  while (!signal.aborted) {
    const attempt = new AbortController();
    const giveUp = (): void => attempt.abort();
    let timer = setTimeout(giveUp, SILENCE_MS);
    try {
      const options = { signal: AbortSignal.any([signal, attempt.signal]), timeoutMs: 0 };
      let isFirst = true;
      for await (const batch of requests.watch({ filter: toFilterMessage(filter, "live") }, options)) {
        clearTimeout(timer);
        timer = setTimeout(giveUp, SILENCE_MS);
        if (isFirst) {
          onState("live");
          onBegin(batch.requests);
        } else {
          onBatch(batch.requests, Number(batch.skipped));
        }
        isFirst = false;
        waitMs = RETRY_MS[0];
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!attempt.signal.aborted && !isTransient(error)) return onState({ error });
    } finally {
      clearTimeout(timer);
    }
    onState("interrupted");
    await pause(waitMs, signal);
    waitMs = Math.min(2 * waitMs, RETRY_MS[1]);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
