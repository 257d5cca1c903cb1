/** Maximum number of pages of one list, to bound the memory of the browser. */
const MAX_PAGES = 20;

/** Loads the pages of a paginated list, at most MAX_PAGES. */
export async function loadPages<R extends { readonly nextPageToken: string }>(
  load: (pageToken: string) => Promise<R>,
): Promise<R[]> {
  const pages: R[] = [];
  let pageToken = "";
  do {
    const page = await load(pageToken);
    pages.push(page);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && pages.length < MAX_PAGES);
  return pages;
}
