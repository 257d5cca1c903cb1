import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { ModelPrice } from "../../gen/parley/v1/model_pb.js";
import { HealthBadge } from "../components/health-badge.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { Fact } from "../components/fact.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatLatency, formatShare } from "../format/health.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatShort } from "../format/number.ts";
import { ABILITIES, makes } from "./abilities.ts";
import { StageBadge } from "./stage-badge.tsx";

export function ModelItem({ model }: { readonly model: Model }) {
  const { id, description, provider, price, attempts, failures, firstContent, targets } = model;
  const isRoute = targets.length > 0;
  const abilities = ABILITIES.filter(([, has]) => has(model)).map(([name]) => name);
  const isEmbedding = makes(model, Modality.EMBEDDING);
  const query = `?model=${encodeURIComponent(id)}`;
  return (
    <li className="flex flex-col rounded-xl border border-line bg-surface p-5">
      <div className="flex items-start justify-between gap-4">
        <div className="min-w-0">
          <h2 className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <code className="font-mono text-base font-semibold wrap-anywhere">{id}</code>
            {!isRoute && <HealthBadge of={model} />}
            <StageBadge model={model} />
          </h2>
          <p className="mt-1 text-sm wrap-anywhere text-muted">
            <bdi>{description}</bdi> · {isRoute ? `served by ${targets.join(", ")}` : <bdi>{provider}</bdi>}
          </p>
        </div>
        <CopyButton text={id} what={`the name ${id}`} />
      </div>
      <p className="mt-3 text-sm">{abilities.join(" · ") || "Text only"}</p>
      <dl className="mt-4 grid grid-cols-2 gap-x-6 gap-y-3 text-sm sm:grid-cols-3">
        <Fact name="Context">{formatShort(model.contextWindow)} tokens</Fact>
        {!isEmbedding && <Fact name="Max output">{formatShort(model.maxOutputTokens)} tokens</Fact>}
        <Fact name="Price per 1M tokens">
          {price === undefined ? (
            isRoute ? (
              "That of the model that serves"
            ) : (
              "Not configured"
            )
          ) : (
            <Price price={price} model={model} />
          )}
          {model.priceTiers.map(
            ({ abovePromptTokens, price: dearer }) =>
              dearer !== undefined && (
                <span key={abovePromptTokens} className="mt-1 block">
                  Prompts above {formatShort(abovePromptTokens)} tokens:
                  <Price price={dearer} model={model} />
                </span>
              ),
          )}
        </Fact>
        {!isRoute && <Fact name="Time to first token">{formatLatency(firstContent, attempts)}</Fact>}
        {!isRoute && <Fact name="Error rate">{formatShare(failures, attempts)}</Fact>}
      </dl>
      <p className="mt-auto flex flex-wrap gap-x-5 gap-y-2 pt-4 text-sm">
        {!isEmbedding && (
          <TextLink to={`/playground${query}`} label={`Try it: ${id}`}>
            Try it
          </TextLink>
        )}
        <TextLink to={`/requests${query}`} label={`Requests for ${id}`}>
          Requests
        </TextLink>
        {/* Usage is that of the models that serve. */}
        {!isRoute && (
          <TextLink to={`/usage${query}`} label={`Usage for ${id}`}>
            Usage
          </TextLink>
        )}
      </p>
    </li>
  );
}

function Price({ price, model }: { readonly price: ModelPrice; readonly model: Model }) {
  const {
    inputMicroUsdPerMtok: input,
    outputMicroUsdPerMtok: output,
    cachedInputMicroUsdPerMtok: cachedInput = input,
    imageOutputMicroUsdPerMtok: imageOutput = output,
  } = price;
  const lines = [
    `${formatMicroUsd(input)} input`,
    ...(cachedInput === input ? [] : [`${formatMicroUsd(cachedInput)} cached input`]),
    ...(makes(model, Modality.EMBEDDING) ? [] : [`${formatMicroUsd(output)} output`]),
    ...(makes(model, Modality.IMAGE) ? [`${formatMicroUsd(imageOutput)} image output`] : []),
  ];
  return lines.map((line) => (
    <span key={line} className="block">
      {line}
    </span>
  ));
}
