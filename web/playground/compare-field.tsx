import { X } from "lucide-react";
import type { ModelSetting } from "../../gen/parley/console/v1/settings_pb.js";
import { Choose } from "../components/choose.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { MAX_COMPARED, useWorkspace } from "./workspace.ts";

interface CompareFieldProps {
  readonly models: readonly ModelSetting[];
  /** The first model. */
  readonly model: string | undefined;
  readonly onCompare: (models: readonly string[]) => void;
}

/** Field for the models that answer beside the first one. */
export function CompareField({ models, model, onCompare }: CompareFieldProps) {
  const threads = useWorkspace((state) => state.threads);
  const compared = threads.slice(1).map((thread) => thread.model);
  const left = models.filter(({ id }) => id !== model && !compared.includes(id));
  return (
    <div className="space-y-2">
      {compared.length > 0 && (
        <ul aria-label="Compared models">
          {compared.map((id) => (
            <li key={id} className="flex items-center justify-between gap-2">
              <span className="min-w-0 font-mono text-[0.8125rem] wrap-anywhere">{id}</span>
              <IconButton
                name={`Do not compare with ${id}`}
                Icon={X}
                onClick={() => onCompare(compared.filter((other) => other !== id))}
              />
            </li>
          ))}
        </ul>
      )}
      {left.length > 0 && compared.length < MAX_COMPARED && (
        <Choose
          label="Compare with"
          value=""
          placeholder="Add a model …"
          choices={left.map(({ id }) => [id, id])}
          onChange={(id) => onCompare([...compared, id])}
        />
      )}
    </div>
  );
}
