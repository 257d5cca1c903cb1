import { use, useState } from "react";
import { Button } from "../components/button.tsx";
import { TextAreaField } from "../components/field.tsx";
import type { ToolCall } from "../../gen/parley/v1/message_pb.js";
import { ThreadContext, workspace } from "./workspace.ts";

/** Form for the results of tool calls, entered by hand. */
export function ToolResults({ calls }: { readonly calls: readonly ToolCall[] }) {
  const threadId = use(ThreadContext);
  const [texts, setTexts] = useState<readonly string[]>(calls.map(() => ""));
  return (
    <form
      className="mt-3 space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        workspace.sendResults(threadId, texts);
      }}
    >
      {calls.map(({ id, name }, index) => (
        <TextAreaField
          key={id}
          label={`Result of ${name}`}
          hint="The function’s return value, as text or JSON."
          rows={2}
          value={texts[index]}
          onChange={(event) => setTexts(texts.toSpliced(index, 1, event.target.value))}
        />
      ))}
      <Button type="submit">{calls.length === 1 ? "Send result" : "Send results"}</Button>
    </form>
  );
}
