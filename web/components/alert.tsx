import type { ReactNode } from "react";
import { isUnreachable, readFailure } from "../api/failure.ts";
import { useReconnect } from "../api/reconnect.ts";
import { Button } from "./button.tsx";

/** What went wrong, read out at once. */
export function Alert({ children }: { readonly children: ReactNode }) {
  return (
    <div role="alert" className="rounded-lg bg-danger-soft px-4 py-3 text-sm wrap-anywhere text-danger">
      {children}
    </div>
  );
}

/** Why a part of a page could not be shown, and a way to try again. Retries by itself once Parley can be reached again. */
export function Unavailable({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  const isLost = isUnreachable(error);
  useReconnect(isLost, onRetry);
  if (isLost) return <Unreachable onRetry={onRetry} />;
  return (
    <Apology action="Try again" onAct={onRetry}>
      {readFailure(error)?.message ?? "The request was cancelled."}
    </Apology>
  );
}

/** What is shown while Parley cannot be reached and somebody keeps trying. */
export function Unreachable({ onRetry }: { readonly onRetry: () => void }) {
  return (
    <Apology action="Retry" onAct={onRetry}>
      Can’t reach Parley. Retrying…
    </Apology>
  );
}

interface ApologyProps {
  readonly action: string;
  readonly onAct: () => void;
  readonly children: string;
}

/** Stands in for something that cannot be shown. */
export function Apology({ action, onAct, children }: ApologyProps) {
  return (
    <div role="alert" className="rounded-xl border border-line bg-surface px-6 py-10 text-center">
      <p className="mx-auto max-w-md text-muted">{children}</p>
      <Button look="secondary" className="mt-5" onClick={onAct}>
        {action}
      </Button>
    </div>
  );
}
