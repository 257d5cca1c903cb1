import { useState } from "react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Bookmark, Trash2 } from "lucide-react";
import { Link } from "wouter";
import { requests } from "../api/requests.ts";
import { refreshSavedFilters, savedFiltersQuery } from "../api/saved-filters.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { PATHS } from "../paths.ts";

/** Button with the account's saved filters, and a form that saves the current one. `query`: that of the current view. */
export function SavedFilters({ query }: { readonly query: string }) {
  const [isOpen, setOpen] = useState(false);
  const close = (): void => setOpen(false);
  return (
    <>
      <Button look="secondary" size="small" onClick={() => setOpen(true)}>
        <Bookmark aria-hidden className="size-4" />
        Saved filters
      </Button>
      <Dialog
        open={isOpen}
        title="Saved filters"
        description="Filters and sorting of this page, saved for your account."
        onClose={close}
      >
        <List onChosen={close} />
        <SaveForm query={query} onSaved={close} />
      </Dialog>
    </>
  );
}

function List({ onChosen }: { readonly onChosen: () => void }) {
  const saved = useQuery(savedFiltersQuery);
  const remove = useMutation({
    mutationFn: (name: string) => requests.removeSavedFilter({ name }),
    onSettled: refreshSavedFilters,
  });
  if (saved.isLoadingError) return <Unavailable error={saved.error} onRetry={() => void saved.refetch()} />;
  if (saved.data === undefined || saved.data.length === 0) {
    return <p className="text-sm text-muted">{saved.isPending ? "Loading…" : "None yet."}</p>;
  }
  return (
    <ul className="-mx-2 max-h-72 overflow-y-auto" aria-label="Saved filters">
      {saved.data.map(({ name, query }) => (
        <li key={name} className="flex items-center gap-2 rounded-lg px-2 hover:bg-sunken">
          <Link
            href={query === "" ? PATHS.requests : `${PATHS.requests}?${query}`}
            onClick={onChosen}
            className="min-w-0 flex-1 py-2 font-medium text-accent underline-offset-2 wrap-anywhere hover:underline"
          >
            <bdi>{name}</bdi>
          </Link>
          <IconButton name={`Remove ${name}`} Icon={Trash2} onClick={() => remove.mutate(name)} />
        </li>
      ))}
    </ul>
  );
}

function SaveForm({ query, onSaved }: { readonly query: string; readonly onSaved: () => void }) {
  const save = useMutation({
    mutationFn: (name: string) => requests.saveFilter({ filter: { name, query } }),
    async onSuccess() {
      await refreshSavedFilters();
      onSaved();
    },
  });
  return (
    <Form
      fields={["filter.name"]}
      error={save.error}
      onSubmit={(written) => save.mutate(written.get("name"))}
      className="mt-5 space-y-4 border-t border-line pt-5"
    >
      {(errors) => (
        <>
          <TextField
            label="Save the current filter as"
            name="name"
            autoComplete="off"
            maxLength={60}
            disabled={query === ""}
            error={errors("filter.name")}
            hint={query === "" ? "Choose a filter or a sort order first." : "Replaces one of the same name."}
          />
          <DialogActions close="Close">
            <Button type="submit" busy={save.isPending} disabled={query === ""}>
              Save
            </Button>
          </DialogActions>
        </>
      )}
    </Form>
  );
}
