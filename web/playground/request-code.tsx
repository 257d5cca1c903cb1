import { useMemo, useState } from "react";
import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { CopyButton } from "../components/copy-button.tsx";
import { SelectField } from "../components/field.tsx";
import { toChatJson } from "./chat-json.ts";
import { PROGRAMS } from "./programs.ts";
import { shorten } from "./shorten.ts";

/** Shows the request as code in a selected language. */
export function RequestCode({ request }: { readonly request: CompletionRequest }) {
  const [name, setName] = useState(PROGRAMS[0]!.name);
  const program = PROGRAMS.find((other) => other.name === name) ?? PROGRAMS[0]!;
  // Memoized, because the component renders for each chunk and images make the text long.
  const text = useMemo(() => program.write(toChatJson(request), location.origin), [program, request]);
  const shown = useMemo(() => shorten(text), [text]);
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <div className="w-40">
          <SelectField label="Language" value={name} onChange={(event) => setName(event.target.value)}>
            {PROGRAMS.map((other) => (
              <option key={other.name}>{other.name}</option>
            ))}
          </SelectField>
        </div>
        <CopyButton text={text} what={`the request as ${name}`} />
      </div>
      <p className="text-sm text-muted">
        {program.needs}. Sends the same request to the OpenAI-compatible endpoint, with the API key from the
        environment.
        {shown !== text && " Images are truncated here but complete in the copy."}
      </p>
      <Code label="Request" text={shown} />
    </div>
  );
}

/** Scrollable code block. */
export function Code({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <pre
      tabIndex={0}
      aria-label={label}
      role="region"
      className="max-h-96 overflow-auto rounded-lg border border-line bg-sunken p-4 font-mono text-[0.8125rem] leading-relaxed"
    >
      <code>{text}</code>
    </pre>
  );
}
