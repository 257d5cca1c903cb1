import { useMemo, useState } from "react";
import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { CopyButton } from "../components/copy-button.tsx";
import { SelectField } from "../components/field.tsx";
import { FORMATS } from "./formats/formats.ts";
import { shorten } from "./shorten.ts";

/** Shows the request in a selected format, as code in a selected language. */
export function RequestCode({ request }: { readonly request: CompletionRequest }) {
  const [formatName, setFormat] = useState(FORMATS[0]!.name);
  const [language, setLanguage] = useState("curl");
  const format = FORMATS.find(({ name }) => name === formatName) ?? FORMATS[0]!;
  const programs = useMemo(() => format.programsFor(request), [format, request]);
  const program = programs.find(({ name }) => name === language) ?? programs[0]!;
  // Memoized, because the component renders for each chunk and images make the text long.
  const text = useMemo(() => program.write(format.toJson(request), location.origin), [program, format, request]);
  const shown = useMemo(() => shorten(text), [text]);
  const missing = format.lacks(request);
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <div className="flex flex-wrap gap-3">
          <div className="w-52">
            <SelectField label="Format" value={format.name} onChange={(event) => setFormat(event.target.value)}>
              {FORMATS.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </SelectField>
          </div>
          <div className="w-32">
            <SelectField label="Language" value={program.name} onChange={(event) => setLanguage(event.target.value)}>
              {programs.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </SelectField>
          </div>
        </div>
        <CopyButton text={text} what={`the request as ${program.name}`} />
      </div>
      <p className="text-sm text-muted">
        {program.needs}. Sends the same request, with the API key from the environment.
        {missing.length > 0 && ` This format has no ${missing.join(", ")}.`}
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
