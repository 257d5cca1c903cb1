import type { ReactNode } from "react";
import { readFailure } from "../api/failure.ts";
import { Button } from "./button.tsx";

/** What went wrong, read out at once. */
export function Alert({ children }: { readonly children: ReactNode }) {
  return (
    <div role="alert" className="rounded-lg bg-danger-soft px-4 py-3 text-sm wrap-anywhere text-danger">
      {children}
    </div>
  );
}

/** Why a part of a page could not be shown, and a way to try again. */
export function Unavailable({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  const failing = readFailure(error);
  return (
    <div role="alert" className="rounded-xl border border-line bg-surface px-6 py-10 text-center">
      <p className="mx-auto max-w-md text-muted">{failing?.message ?? "This was interrupted."}</p>
      <Button look="secondary" className="mt-5" onClick={onRetry}>
        Try again
      </Button>
    </div>
  );
}
