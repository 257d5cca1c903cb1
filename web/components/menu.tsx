import type { ReactNode } from "react";
import { Menu } from "@base-ui/react/menu";

/** Classes of an item of a menu. */
export const MENU_ITEM =
  "flex min-h-9 cursor-pointer items-center gap-2 rounded-md px-2.5 outline-none select-none data-highlighted:bg-sunken";

/** Items of a menu, below its button. Within the page's main landmark, as everything that is no dialog. */
export function MenuItems({ children }: { readonly children: ReactNode }) {
  return (
    <Menu.Portal container={document.getElementById("main")}>
      <Menu.Positioner sideOffset={4} align="end" className="z-30">
        <Menu.Popup className="max-h-[var(--available-height)] min-w-44 overflow-y-auto rounded-lg border border-line bg-surface p-1 text-sm text-ink shadow-lg outline-none">
          {children}
        </Menu.Popup>
      </Menu.Positioner>
    </Menu.Portal>
  );
}
