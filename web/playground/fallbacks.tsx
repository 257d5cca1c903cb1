import type { ModelSetting } from "../../gen/parley/console/v1/settings_pb.js";
import { Button } from "../components/button.tsx";
import { Choose } from "../components/choose.tsx";
import { Fold } from "../components/fold.tsx";
import { useWorkspace, workspace } from "./workspace.ts";

const MAX = 8;

interface FallbacksProps {
  readonly models: readonly ModelSetting[];
  /** The primary model. */
  readonly model: string | undefined;
  readonly error: string | undefined;
}

/** Ordered list of fallback models, which are tried when a model fails before its first content. */
export function Fallbacks({ models, model, error }: FallbacksProps) {
  const fallbacks = useWorkspace((state) => state.draft.fallbacks);
  const change = (next: readonly string[]): void => workspace.draft({ fallbacks: next });
  const left = models.filter(({ id }) => id !== model && !fallbacks.includes(id));
  return (
    <Fold title="Fallback models" summary={String(fallbacks.length || "None")} isOpen={error !== undefined}>
      {fallbacks.length > 0 && (
        <ol className="space-y-2 text-sm">
          {fallbacks.map((id, index) => (
            <li key={id} className="flex flex-wrap items-center justify-between gap-x-2">
              <span className="min-w-0 font-mono text-[0.8125rem] wrap-anywhere">
                {index + 1}. {id}
              </span>
              <span className="-mr-3 flex shrink-0">
                {index > 0 && (
                  <Button
                    look="quiet"
                    size="small"
                    aria-label={`Move ${id} up`}
                    onClick={() => change(moved(fallbacks, index))}
                  >
                    Up
                  </Button>
                )}
                <Button
                  look="quiet danger"
                  size="small"
                  aria-label={`Remove ${id} from the fallback models`}
                  onClick={() => change(fallbacks.toSpliced(index, 1))}
                >
                  Remove
                </Button>
              </span>
            </li>
          ))}
        </ol>
      )}
      {left.length === 0 && fallbacks.length === 0 && (
        <p className="text-sm text-muted">This key has no other models.</p>
      )}
      {left.length > 0 && fallbacks.length < MAX && (
        <Choose
          label="Add a model"
          value=""
          placeholder="Select …"
          error={error}
          hint="Tried in order if a model fails before sending its first token."
          choices={left.map(({ id }) => [id, id])}
          onChange={(id) => change([...fallbacks, id])}
        />
      )}
    </Fold>
  );
}

function moved(ids: readonly string[], index: number): readonly string[] {
  return ids.toSpliced(index - 1, 2, ids[index]!, ids[index - 1]!);
}
