import type { ReactNode } from "react";
import { readFailure } from "../api/failure.ts";
import { useSignOut } from "../api/session.ts";
import { Alert } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";

interface SignOutButtonProps {
  readonly size?: "normal" | "small";
  readonly className?: string;
  readonly children: ReactNode;
}

/** Button that ends the session, and shows an error if that fails. */
export function SignOutButton({ size = "normal", className = "", children }: SignOutButtonProps) {
  const signOut = useSignOut();
  const failing = signOut.isError ? readFailure(signOut.error) : undefined;
  return (
    <>
      <Button
        look="secondary"
        size={size}
        className={className}
        busy={signOut.isPending}
        onClick={() => signOut.mutate()}
      >
        {children}
      </Button>
      {failing && <Alert>You are still signed in. {failing.message}</Alert>}
    </>
  );
}
