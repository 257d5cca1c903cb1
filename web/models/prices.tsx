import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { ModelPrice } from "../../gen/parley/v1/model_pb.js";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount } from "../format/number.ts";

type Amount = (price: ModelPrice) => bigint | undefined;

/** A kind of price, and the modality of the input or output that it is for. Default: every model has it. */
interface Kind {
  readonly name: string;
  readonly of: Amount;
  readonly input?: Modality;
  readonly output?: Modality;
}

/** Prices of a million tokens. */
const PER_MTOK: readonly Kind[] = [
  { name: "Input", of: (price) => price.inputMicroUsdPerMtok },
  { name: "Cached input", of: (price) => price.cachedInputMicroUsdPerMtok },
  { name: "Cache write", of: (price) => price.cacheWriteMicroUsdPerMtok },
  { name: "Cache write, one hour", of: (price) => price.cacheWriteHourMicroUsdPerMtok },
  { name: "Audio input", of: (price) => price.audioInputMicroUsdPerMtok, input: Modality.AUDIO },
  { name: "Cached audio input", of: (price) => price.cachedAudioInputMicroUsdPerMtok, input: Modality.AUDIO },
  { name: "Image input", of: (price) => price.imageInputMicroUsdPerMtok, input: Modality.IMAGE },
  { name: "Cached image input", of: (price) => price.cachedImageInputMicroUsdPerMtok, input: Modality.IMAGE },
  { name: "Output", of: (price) => price.outputMicroUsdPerMtok },
  { name: "Audio output", of: (price) => price.audioOutputMicroUsdPerMtok, output: Modality.AUDIO },
  { name: "Image output", of: (price) => price.imageOutputMicroUsdPerMtok, output: Modality.IMAGE },
];

/** Prices of single events. */
const PER_EVENT: readonly Kind[] = [
  { name: "Request", of: (price) => price.requestMicroUsd },
  { name: "Request with web searches", of: (price) => price.searchedRequestMicroUsd },
  { name: "Web search", of: (price) => price.webSearchMicroUsd },
  { name: "File search", of: (price) => price.fileSearchMicroUsd },
  { name: "Code execution", of: (price) => price.codeExecutionMicroUsd },
];

/** All prices of a model, for each length of prompts. */
export function Prices({ model }: { readonly model: Model }) {
  const { price, priceTiers, inputModalities, outputModalities } = model;
  if (price === undefined) return <p className="text-sm text-muted">No price is configured: the cost is not known.</p>;
  const longer = priceTiers.flatMap(({ abovePromptTokens, price: dearer }) =>
    dearer === undefined ? [] : [[`Prompts above ${formatCount(abovePromptTokens)} tokens`, dearer] as const],
  );
  const columns: readonly (readonly [name: string, price: ModelPrice])[] = [
    [
      priceTiers[0] === undefined ? "Price" : `Prompts up to ${formatCount(priceTiers[0].abovePromptTokens)} tokens`,
      price,
    ],
    ...longer,
  ];
  const shown = (kinds: readonly Kind[]): readonly Kind[] =>
    kinds.filter(
      ({ of, input, output }) =>
        (input === undefined || inputModalities.includes(input)) &&
        (output === undefined || outputModalities.includes(output)) &&
        columns.some(([, each]) => of(each) !== undefined),
    );
  const fees = shown(PER_EVENT);
  return (
    // Focusable, because a scrollable region must be reachable by keyboard.
    <div className="overflow-x-auto" tabIndex={longer.length > 0 ? 0 : undefined} role="group" aria-label="Prices">
      <table className="w-full text-sm tabular-nums">
        <thead className="text-muted">
          <tr>
            <th scope="col" className="py-1 pr-4 text-left font-medium">
              Per million tokens
            </th>
            {columns.map(([name]) => (
              <th key={name} scope="col" className="py-1 pl-4 text-right font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <Rows rows={shown(PER_MTOK)} columns={columns} />
        {fees.length > 0 && (
          <>
            <tbody>
              <tr>
                <th
                  scope="rowgroup"
                  colSpan={columns.length + 1}
                  className="pt-4 pb-1 text-left font-medium text-muted"
                >
                  Each
                </th>
              </tr>
            </tbody>
            <Rows rows={fees} columns={columns} />
          </>
        )}
      </table>
    </div>
  );
}

interface RowsProps {
  readonly rows: readonly Kind[];
  readonly columns: readonly (readonly [name: string, price: ModelPrice])[];
}

function Rows({ rows, columns }: RowsProps) {
  return (
    <tbody className="divide-y divide-line border-y border-line">
      {rows.map(({ name, of }) => (
        <tr key={name}>
          <th scope="row" className="py-1.5 pr-4 text-left font-normal">
            {name}
          </th>
          {columns.map(([column, price]) => {
            const amount = of(price);
            return (
              <td key={column} className="py-1.5 pl-4 text-right">
                {amount === undefined ? "–" : formatMicroUsd(amount)}
              </td>
            );
          })}
        </tr>
      ))}
    </tbody>
  );
}
