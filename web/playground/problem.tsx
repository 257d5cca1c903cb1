import { use } from "react";
import { ConnectError } from "@connectrpc/connect";
import { Link } from "wouter";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { readFailure } from "../api/failure.ts";
import { Alert } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { ThreadContext, useThread, workspace } from "./workspace.ts";

/** Error of a failed or stopped run, with a retry button. */
export function Problem() {
  const { run, refusal } = useThread();
  const error = refusal ?? run?.error;
  if (run?.state === "stopped") return <Again text="You stopped this response." label="Regenerate" />;
  const failing = error == null ? undefined : readFailure(error);
  if (failing === undefined) return null;
  const failure = ConnectError.from(error);
  const requestId = failure.findDetails(ErrorInfoSchema)[0]?.metadata["request_id"] ?? run?.requestId ?? "";
  return (
    <div className="mt-5 space-y-2">
      <Alert>
        <p>{failing.message}</p>
        {requestId !== "" && (
          <p className="mt-1">
            Request{" "}
            <Link href={`/requests/${encodeURIComponent(requestId)}`} className="font-mono underline">
              {requestId}
            </Link>
          </p>
        )}
      </Alert>
      {run?.state === "failed" && <Again label="Try again" />}
    </div>
  );
}

interface AgainProps {
  readonly text?: string;
  readonly label: string;
}

function Again({ text, label }: AgainProps) {
  const threadId = use(ThreadContext);
  return (
    <div className="mt-3 flex flex-wrap items-center gap-x-4 gap-y-2 text-sm text-muted">
      {text !== undefined && <p role="status">{text}</p>}
      <Button look="secondary" size="small" onClick={() => workspace.retry(threadId)}>
        {label}
      </Button>
    </div>
  );
}
