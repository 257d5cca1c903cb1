import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { passwordRequest } from "../api/password-request.ts";
import { sessionQuery } from "../api/session.ts";
import { buttonClass } from "../components/button.tsx";
import { DialogActions } from "../components/dialog.tsx";
import { CONFIRM_ADDRESS } from "../sign-in/provider-link.tsx";

/** How often the page asks whether the other tab has confirmed. */
const ASK_MS = 2_000;

/** Confirmation at the OpenID provider in another tab, so that this page keeps its form values. */
export function ProviderConfirmation({ name }: { readonly name: string }) {
  const [isStarted, setStarted] = useState(false);
  const { data } = useQuery({ ...sessionQuery, refetchInterval: isStarted ? ASK_MS : false });
  const freshMs = data?.session?.freshUntil === undefined ? 0 : timestampMs(data.session.freshUntil);
  const [beforeMs] = useState(freshMs);
  useEffect(() => {
    if (freshMs > beforeMs) passwordRequest.succeed();
  }, [freshMs, beforeMs]);
  return (
    <>
      <p role="status" className="text-sm text-muted">
        {isStarted ? `Waiting for ${name} in the other tab …` : ""}
      </p>
      <DialogActions>
        <a
          href={CONFIRM_ADDRESS}
          target="_blank"
          rel="noopener"
          className={buttonClass("primary")}
          onClick={() => setStarted(true)}
        >
          Continue with {name}
        </a>
      </DialogActions>
    </>
  );
}
