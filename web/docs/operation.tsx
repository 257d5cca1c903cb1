import type { ReactNode } from "react";
import { Prose } from "../components/prose.tsx";
import type { Method } from "./reference.ts";
import { BOTH_CLASS, SIDE_CLASS } from "./sides.ts";
import { Anchor } from "./section.tsx";
import { Type } from "./topic-view.tsx";

interface OperationProps {
  /** Over HTTP, such as `POST /v1/chat/completions`. */
  readonly http?: string;
  readonly httpText?: ReactNode;
  readonly methods: readonly Method[];
}

/** How something is asked for: over HTTP beside gRPC and Connect. */
export function Operation({ http, httpText, methods }: OperationProps) {
  return (
    <div className={`items-stretch gap-4 ${BOTH_CLASS}`}>
      {http !== undefined && (
        <div className={`rounded-xl border border-line bg-surface p-4 text-sm ${SIDE_CLASS.http}`}>
          <p className="text-xs font-semibold text-muted">HTTP</p>
          <p className="mt-1.5 font-mono font-medium wrap-anywhere">{http}</p>
          {httpText !== undefined && <div className="mt-1.5 space-y-1.5">{httpText}</div>}
        </div>
      )}
      {methods.map(({ anchor, path, text, input, output, isStream }) => (
        <div
          key={anchor}
          id={anchor}
          className={`scroll-mt-6 rounded-xl border border-line bg-surface p-4 text-sm target:bg-accent-soft ${SIDE_CLASS.grpc}`}
        >
          <p className="text-xs font-semibold text-muted">gRPC and Connect</p>
          <p className="mt-1.5 font-mono font-medium wrap-anywhere">
            <Anchor to={anchor}>{path}</Anchor>
          </p>
          <p className="mt-1 text-muted wrap-anywhere">
            takes <Type parts={[input]} />, returns {isStream ? "a stream of " : ""}
            <Type parts={[output]} />
          </p>
          <div className="mt-1.5 space-y-1.5">
            <Prose text={text} />
          </div>
        </div>
      ))}
    </div>
  );
}
