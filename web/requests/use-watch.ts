import { useEffect, useEffectEvent, useState } from "react";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { isTransient } from "../api/failure.ts";
import { type LogFilter, requests, toFilterMessage } from "../api/requests.ts";

/** Timeout without a message. The server sends a heartbeat every 10 seconds. */
const SILENCE_MS = 30_000;
const RETRY_MS = [1_000, 10_000] as const;

/** State of the stream. An error is permanent: it is not retried. */
export type WatchState = "off" | "connecting" | "live" | "interrupted" | { readonly error: unknown };

interface Watcher {
  /**
   * The stream has started and reports every request from now on. `refused` are earlier refused requests, of which the
   * list has samples.
   */
  readonly onBegin: (refused: readonly LoggedRequest[]) => void;
  readonly onBatch: (batch: readonly LoggedRequest[], skipped: number) => void;
}

/** Streams completed requests, and reconnects after interruptions. */
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
