import { lazy, Suspense, useState, useSyncExternalStore } from "react";
import { passwordRequest } from "../api/password-request.ts";

const PasswordDialog = lazy(() => import("./password-dialog.tsx"));

/** Loads the password dialog when a call first needs it. */
export function PasswordOnDemand() {
  const isOpen = useSyncExternalStore(passwordRequest.subscribe, passwordRequest.isOpen);
  const [isLoaded, setLoaded] = useState(false);
  if (isOpen && !isLoaded) setLoaded(true);
  if (!isLoaded) return null;
  return (
    <Suspense>
      <PasswordDialog open={isOpen} />
    </Suspense>
  );
}
