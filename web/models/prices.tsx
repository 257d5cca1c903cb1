import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import type { ModelPrice } from "../../gen/parley/v1/model_pb.js";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount } from "../format/number.ts";

type Amount = (price: ModelPrice) => bigint | undefined;

/** Prices of a million tokens. */
const PER_MTOK: readonly (readonly [name: string, of: Amount])[] = [
  ["Input", (price) => price.inputMicroUsdPerMtok],
  ["Cached input", (price) => price.cachedInputMicroUsdPerMtok],
  ["Cache write", (price) => price.cacheWriteMicroUsdPerMtok],
  ["Cache write, one hour", (price) => price.cacheWriteHourMicroUsdPerMtok],
  ["Audio input", (price) => price.audioInputMicroUsdPerMtok],
  ["Cached audio input", (price) => price.cachedAudioInputMicroUsdPerMtok],
  ["Image input", (price) => price.imageInputMicroUsdPerMtok],
  ["Cached image input", (price) => price.cachedImageInputMicroUsdPerMtok],
  ["Output", (price) => price.outputMicroUsdPerMtok],
  ["Audio output", (price) => price.audioOutputMicroUsdPerMtok],
  ["Image output", (price) => price.imageOutputMicroUsdPerMtok],
];

/** Prices of single events. */
const PER_EVENT: readonly (readonly [name: string, of: Amount])[] = [
  ["Request", (price) => price.requestMicroUsd],
  ["Request with web searches", (price) => price.searchedRequestMicroUsd],
  ["Web search", (price) => price.webSearchMicroUsd],
  ["File search", (price) => price.fileSearchMicroUsd],
  ["Code execution", (price) => price.codeExecutionMicroUsd],
];

/** All prices of a model, for each length of prompts. */
export function Prices({ model: { price, priceTiers } }: { readonly model: Model }) {
  if (price === undefined) return <p className="text-sm text-muted">No price is configured: the cost is not known.</p>;
  const longer = priceTiers.flatMap(({ abovePromptTokens, price: dearer }) =>
    dearer === undefined ? [] : [[`Prompts above ${formatCount(abovePromptTokens)} tokens`, dearer] as const],
  );
  const columns: readonly (readonly [name: string, price: ModelPrice])[] = [
    [longer.length === 0 ? "Price" : "Shorter prompts", price],
    ...longer,
  ];
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
        <Rows rows={PER_MTOK} columns={columns} />
        {PER_EVENT.some(([, of]) => columns.some(([, each]) => of(each) !== undefined)) && (
          <>
            <tbody>
              <tr>
                <th scope="rowgroup" colSpan={columns.length + 1} className="pt-4 pb-1 text-left font-medium text-muted">
                  Each
                </th>
              </tr>
            </tbody>
            <Rows rows={PER_EVENT} columns={columns} />
          </>
        )}
      </table>
    </div>
  );
}

interface RowsProps {
  readonly rows: typeof PER_MTOK;
  readonly columns: readonly (readonly [name: string, price: ModelPrice])[];
}

function Rows({ rows, columns }: RowsProps) {
  return (
    <tbody className="divide-y divide-line border-y border-line">
      {rows
        .filter(([, of]) => columns.some(([, price]) => of(price) !== undefined))
        .map(([name, of]) => (
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
