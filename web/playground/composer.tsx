import { type ChangeEvent, useRef, useState } from "react";
import { Button } from "../components/button.tsx";
import { TextAreaField } from "../components/field.tsx";
import { DataImage } from "./data-image.tsx";
import { Estimate } from "./estimate.tsx";
import { Pace } from "./pace.tsx";
import { ACCEPTED, readPictures } from "./pictures.ts";
import { openCalls, type Picture } from "./turns.ts";
import { useWorkspace, workspace } from "./workspace.ts";

/** Form to write and send a message, and to stop the response. */
export function Composer() {
  const message = useWorkspace((state) => state.message);
  const pictures = useWorkspace((state) => state.pictures);
  const threads = useWorkspace((state) => state.threads);
  const isRunning = threads.some(({ run }) => run?.state === "running");
  const isCompared = threads.length > 1;
  const [error, setError] = useState<string>();
  const isWaiting = threads.some(({ turns }) => openCalls(turns).length > 0);
  const hasMessage = message.trim() !== "" || pictures.length > 0;
  const canGoOn = threads.some(({ turns }) => turns.length > 0 && turns.at(-1)?.role !== "assistant");

  const send = (): void => {
    if (isRunning) return;
    const isAble = !isWaiting && (hasMessage || canGoOn);
    setError(isAble ? undefined : isWaiting ? "Send the tool results first." : "Enter a message first.");
    if (isAble) workspace.send();
  };
  const attach = async (files: readonly File[]): Promise<void> => {
    const read = await readPictures(files, workspace.state.pictures);
    workspace.change({ pictures: read.pictures });
    setError(read.error);
  };
  return (
    <form
      className="space-y-3 rounded-xl border border-line bg-surface p-4 sm:p-5"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <TextAreaField
        label="Message"
        error={error}
        rows={3}
        value={message}
        onChange={(event) => workspace.change({ message: event.target.value })}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          send();
        }}
        onPaste={(event) => {
          const files = [...event.clipboardData.files];
          if (files.length === 0) return;
          event.preventDefault();
          void attach(files);
        }}
      />
      <Attached pictures={pictures} />
      <div className="flex flex-wrap items-center justify-between gap-3">
        <div className="flex flex-wrap items-center gap-3">
          {isRunning ? (
            <Button look="secondary" onClick={() => workspace.stop()}>
              {isCompared ? "Stop all" : "Stop"}
            </Button>
          ) : (
            <Button type="submit">{hasMessage || !canGoOn ? "Send" : "Run"}</Button>
          )}
          <PicturePicker onPick={(files) => void attach(files)} />
          <span className="text-sm text-muted max-sm:hidden">Ctrl or ⌘ + Enter</span>
        </div>
        {!isCompared && <Pace />}
      </div>
      <Estimate />
    </form>
  );
}

function PicturePicker({ onPick }: { readonly onPick: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const pick = ({ target }: ChangeEvent<HTMLInputElement>): void => {
    onPick([...(target.files ?? [])]);
    // Allows selecting the same file again after it was removed.
    target.value = "";
  };
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        accept={ACCEPTED}
        aria-label="Pictures"
        tabIndex={-1}
        className="sr-only"
        onChange={pick}
      />
      <Button look="secondary" onClick={() => input.current?.click()}>
        Attach images
      </Button>
    </>
  );
}

function Attached({ pictures }: { readonly pictures: readonly Picture[] }) {
  if (pictures.length === 0) return null;
  return (
    <ul aria-label="Attached images" className="flex flex-wrap gap-3">
      {pictures.map((picture) => (
        <li key={picture.id} className="flex items-center gap-2 rounded-lg border border-line py-1.5 pr-1 pl-2 text-sm">
          <DataImage mediaType={picture.mediaType} data={picture.data} alt="" className="size-9 rounded object-cover" />
          <span className="max-w-40 truncate">{picture.name}</span>
          <Button
            look="quiet danger"
            size="small"
            aria-label={`Remove ${picture.name}`}
            onClick={() => workspace.change({ pictures: pictures.filter((other) => other !== picture) })}
          >
            Remove
          </Button>
        </li>
      ))}
    </ul>
  );
}
