import type { Report } from "./config-error.ts";
import type { ModelConfig } from "./config.ts";
import { missingModel } from "./routes.ts";

/** Reports the models of `interchangeable` that cannot take another one's place. */
export function checkInterchangeable(models: readonly ModelConfig[], report: Report): void {
  const byId = new Map(models.map((model) => [model.id, model]));
  for (const { id, modalities, interchangeable } of models) {
    if (interchangeable.length === 0) continue;
    const path = ["models", id, "interchangeable"];
    if (!modalities.output.includes("embedding")) {
      report(path, "is only for models that make embeddings; other models have targets, and requests fallback_models");
      continue;
    }
    interchangeable.forEach((name, index) => {
      const problem = problemOf(name, { id, byId, isRepeated: interchangeable.indexOf(name) < index });
      if (problem !== undefined) report([...path, index], problem);
    });
  }
}

interface Facts {
  readonly id: string;
  readonly byId: ReadonlyMap<string, ModelConfig>;
  readonly isRepeated: boolean;
}

function problemOf(name: string, { id, byId, isRepeated }: Facts): string | undefined {
  const model = byId.get(name);
  if (model === undefined) return missingModel(name, [...byId.keys()]);
  if (name === id) return "is this model itself";
  if (isRepeated) return `${name} stands here already`;
  return model.modalities.output.includes("embedding") ? undefined : `${name} makes no embeddings`;
}
