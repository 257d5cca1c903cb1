import { SelectField } from "./field.tsx";
import type { SortProps } from "./sorted-head.tsx";

interface SortFieldProps<Column extends string> extends SortProps<Column> {
  /** Name of the order of the list. */
  readonly usual: string;
}

/** Field for the order of a table, where a column header that sorts is missing: on phones all of them are. */
export function SortField<Column extends string>({ columns, sorting, onSort, usual }: SortFieldProps<Column>) {
  const directions = [false, true];
  return (
    <SelectField
      label="Sort by"
      isLabelHidden
      value={sorting === undefined ? "" : `${sorting.column} ${sorting.isDescending}`}
      onChange={({ target: { value } }) => {
        const [chosen, isDescending] = value.split(" ");
        const column = columns.find((each) => each.column !== undefined && each.column === chosen)?.column;
        onSort(column && { column, isDescending: isDescending === "true" });
      }}
    >
      <option value="">{usual}</option>
      {columns.flatMap(({ name, title = name, column }) =>
        column === undefined
          ? []
          : directions.map((isDescending) => (
              <option key={`${column} ${isDescending}`} value={`${column} ${isDescending}`}>
                {title}, {isDescending ? "descending" : "ascending"}
              </option>
            )),
      )}
    </SelectField>
  );
}
