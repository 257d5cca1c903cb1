import type { ReactNode } from "react";
import { isUnreachable, readFailure } from "../api/failure.ts";
import { useReconnect } from "../api/reconnect.ts";
import { Button } from "./button.tsx";

/** Error message, announced by screen readers immediately. */
export function Alert({ children }: { readonly children: ReactNode }) {
  return (
    <div role="alert" className="rounded-lg bg-danger-soft px-4 py-3 text-sm wrap-anywhere text-danger">
      {children}
    </div>
  );
}

/** Error in place of content, with a retry button. Retries automatically when Parley is reachable again. */
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

/** Shown while Parley is unreachable; the caller retries. */
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

/** Placeholder for content that could not be loaded. */
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
