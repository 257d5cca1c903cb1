import type { SpendingOverview } from "../../gen/parley/console/v1/overview_pb.js";
import { ENGLISH } from "../format/locale.ts";
import { formatBudget, formatMicroUsd, formatShareOfBudget } from "../format/money.ts";
import { PATHS } from "../paths.ts";
import { Tile } from "./tile.tsx";

const MONTH = new Intl.DateTimeFormat(ENGLISH, { month: "long", timeZone: "UTC" });

/** Cost of today and of the month, with its forecast and its budget. */
export function Spending({ spending }: { readonly spending: SpendingOverview }) {
  const { todayMicroUsd, month, monthMicroUsd, forecastMicroUsd, budgetMicroUsd: budget } = spending;
  const name = MONTH.format(Date.parse(`${month}-01T00:00:00Z`));
  const used = budget === undefined ? undefined : formatBudget({ spent: monthMicroUsd, budget });
  const forecast = budget === undefined ? undefined : formatBudget({ spent: forecastMicroUsd, budget });
  return (
    <dl className="grid grid-cols-2 gap-3 *:last:col-span-2 lg:grid-cols-3 lg:*:last:col-span-1">
      <Tile
        name="Cost today"
        value={formatMicroUsd(todayMicroUsd)}
        note="Since midnight"
        href={`${PATHS.usage}?range=24h`}
      />
      <Tile
        name={`Cost in ${name}`}
        value={used?.spent ?? formatMicroUsd(monthMicroUsd)}
        note={
          budget === undefined
            ? "Since the 1st, in UTC"
            : `${formatShareOfBudget({ spent: monthMicroUsd, budget })} of the budget of ${used?.budget}`
        }
        href={`${PATHS.usage}?range=30d`}
      >
        {budget !== undefined && <Bar share={Number(monthMicroUsd) / Math.max(Number(budget), 1)} />}
      </Tile>
      <Tile
        name={`Forecast for ${name}`}
        value={forecast?.spent ?? formatMicroUsd(forecastMicroUsd)}
        note={
          budget !== undefined && forecastMicroUsd > budget ? (
            <span className="text-danger">
              {formatMicroUsd(forecastMicroUsd - budget)} over the budget of {forecast?.budget}
            </span>
          ) : (
            "At the rate of the last 7 days"
          )
        }
        href={`${PATHS.usage}?range=7d`}
      />
    </dl>
  );
}

function Bar({ share }: { readonly share: number }) {
  const look = share >= 1 ? "bg-danger" : share >= 0.8 ? "bg-warn" : "bg-accent";
  return (
    <span className="block h-1.5 overflow-hidden rounded-full bg-line" aria-hidden>
      <span className={`block h-full rounded-full ${look}`} style={{ width: `${Math.min(share, 1) * 100}%` }} />
    </span>
  );
}
