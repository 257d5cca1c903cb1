import { useEffect, useRef, useState } from "react";
import { Menu } from "@base-ui/react/menu";
import { Download } from "lucide-react";
import { ExportFormat } from "../../gen/parley/console/v1/request_pb.js";
import { readFailure } from "../api/failure.ts";
import { requests, toFilterMessage } from "../api/requests.ts";
import { Button, buttonClass } from "../components/button.tsx";
import { MENU_ITEM, MenuItems } from "../components/menu.tsx";
import { download } from "../format/download.ts";
import { formatCount } from "../format/number.ts";
import { type LogView, ORDERS } from "./filter.ts";

const FILES = [
  { name: "CSV", format: ExportFormat.CSV, ending: "csv", mediaType: "text/csv" },
  { name: "JSON lines", format: ExportFormat.UNSPECIFIED, ending: "jsonl", mediaType: "application/jsonl" },
] as const;

type File = (typeof FILES)[number];

/** Menu that saves the filtered requests in their order as a file, and shows the number of received ones. */
export function ExportMenu({ view }: { readonly view: LogView }) {
  const [count, setCount] = useState<number>();
  const [note, setNote] = useState("");
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const save = async (file: File): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    setNote("");
    setCount(0);
    try {
      const { pieces, total, isCut } = await receive(view, file, { signal: controller.signal, onCount: setCount });
      download(nameOf(file), pieces, file.mediaType);
      const counted = `${formatCount(total)} ${total === 1 ? "request" : "requests"}`;
      setNote(
        isCut ? `The file has the latest ${counted}. Choose a shorter time for earlier ones.` : `Saved ${counted}.`,
      );
    } catch (error) {
      if (!controller.signal.aborted) setNote(`Export failed. ${readFailure(error)?.message ?? ""}`);
    } finally {
      setCount(undefined);
    }
  };
  return (
    <>
      {count === undefined ? (
        <Menu.Root>
          <Menu.Trigger className={buttonClass("secondary", "small")}>
            <Download aria-hidden className="size-4" />
            Export
          </Menu.Trigger>
          <MenuItems>
            {FILES.map((file) => (
              <Menu.Item key={file.name} className={MENU_ITEM} onClick={() => void save(file)}>
                {file.name}
              </Menu.Item>
            ))}
          </MenuItems>
        </Menu.Root>
      ) : (
        <Button look="secondary" size="small" onClick={() => running.current?.abort()}>
          {formatCount(count)} exported · Cancel
        </Button>
      )}
      <span role="status" className="text-sm text-muted">
        {note}
      </span>
    </>
  );
}

function nameOf({ ending }: File): string {
  return `requests-${new Date().toISOString().slice(0, 10)}.${ending}`;
}

async function receive(
  { filter, order, isAscending }: LogView,
  { format }: File,
  { signal, onCount }: { readonly signal: AbortSignal; readonly onCount: (count: number) => void },
): Promise<{ readonly pieces: BlobPart[]; readonly total: number; readonly isCut: boolean }> {
  const pieces: BlobPart[] = [];
  let total = 0;
  let isCut = false;
  const sort = { order: ORDERS[order], ascending: isAscending };
  const asked = { filter: toFilterMessage(filter, "list"), format, ...sort };
  for await (const piece of requests.export(asked, { signal, timeoutMs: 0 })) {
    pieces.push(new Uint8Array(piece.data));
    total += piece.count;
    isCut ||= piece.isCut;
    onCount(total);
  }
  return { pieces, total, isCut };
}
