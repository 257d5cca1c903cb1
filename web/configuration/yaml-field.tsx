import { type ComponentProps, useEffect, useRef } from "react";
import { TextAreaField } from "../components/field.tsx";
import { describeProblems, type Problem } from "./problems.ts";

interface YamlFieldProps extends ComponentProps<"textarea"> {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly problems: readonly Problem[];
}

/** Text in YAML. The problems are below it with line and column, and the cursor goes to the first. */
export function YamlField({ problems, ...rest }: YamlFieldProps) {
  const box = useRef<HTMLTextAreaElement>(null);
  const first = problems.find(({ line }) => line > 0);
  useEffect(() => {
    const area = box.current;
    if (area === null || first === undefined) return;
    const before = area.value.split("\n").slice(0, first.line - 1);
    const at = before.reduce((sum, line) => sum + line.length + 1, 0) + first.column - 1;
    area.focus();
    area.setSelectionRange(at, at);
  }, [first]);
  return (
    <TextAreaField
      rows={8}
      {...rest}
      ref={box}
      spellCheck={false}
      autoCapitalize="off"
      wrap="off"
      className="font-mono text-sm sm:text-[0.8125rem]"
      error={describeProblems(problems)}
    />
  );
}
