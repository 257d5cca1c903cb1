import { Menu } from "@base-ui/react/menu";
import { Ellipsis } from "lucide-react";
import { Link } from "wouter";
import { MENU_ITEM, MenuItems } from "./menu.tsx";
import { MENU_BUTTON, menuName, type RowActionsProps } from "./row-actions.tsx";

/** Menu with the actions of a row, open at first. */
export default function ActionMenu({ of, actions }: RowActionsProps) {
  return (
    <Menu.Root defaultOpen>
      <Menu.Trigger aria-label={menuName(of)} className={MENU_BUTTON}>
        <Ellipsis aria-hidden className="size-4.5" />
      </Menu.Trigger>
      <MenuItems>
        {actions.map(({ verb, Icon, ...action }) => {
          const content = (
            <>
              <Icon aria-hidden className="size-4 text-muted" />
              {verb}
            </>
          );
          return "href" in action ? (
            <Menu.Item key={verb} className={MENU_ITEM} render={<Link href={action.href} />}>
              {content}
            </Menu.Item>
          ) : (
            <Menu.Item key={verb} className={MENU_ITEM} onClick={action.onClick}>
              {content}
            </Menu.Item>
          );
        })}
      </MenuItems>
    </Menu.Root>
  );
}
