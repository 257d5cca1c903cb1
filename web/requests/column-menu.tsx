import { Menu } from "@base-ui/react/menu";
import { Check, Columns3 } from "lucide-react";
import { MENU_ITEM, MenuItems } from "../components/menu.tsx";
import { buttonClass } from "../components/button.tsx";
import { COLUMN_IDS, type ColumnId, columnOf, FIXED } from "./columns.tsx";
import { USUAL_COLUMNS } from "./use-columns.ts";

interface ColumnMenuProps {
  readonly columns: readonly ColumnId[];
  readonly onChange: (columns: readonly ColumnId[]) => void;
}

/** Menu with the columns to show. Not on phones, where a request is a card. */
export function ColumnMenu({ columns, onChange }: ColumnMenuProps) {
  return (
    <Menu.Root>
      <Menu.Trigger className={`${buttonClass("secondary", "small")} max-lg:hidden`}>
        <Columns3 aria-hidden className="size-4" />
        Columns
      </Menu.Trigger>
      <MenuItems>
        {COLUMN_IDS.filter((id) => !FIXED.includes(id)).map((id) => (
          <Menu.CheckboxItem
            key={id}
            checked={columns.includes(id)}
            closeOnClick={false}
            onCheckedChange={(isShown) => onChange(isShown ? [...columns, id] : columns.filter((each) => each !== id))}
            className={MENU_ITEM}
          >
            <span className="flex size-4 items-center">
              <Menu.CheckboxItemIndicator>
                <Check aria-hidden className="size-4" />
              </Menu.CheckboxItemIndicator>
            </span>
            {columnOf(id).title ?? columnOf(id).name}
          </Menu.CheckboxItem>
        ))}
        <Menu.Separator className="my-1 h-px bg-line" />
        <Menu.Item className={MENU_ITEM} onClick={() => onChange(USUAL_COLUMNS)}>
          <span className="size-4" />
          Default columns
        </Menu.Item>
      </MenuItems>
    </Menu.Root>
  );
}
