/** So many pages of a list are asked for and no more: nobody reads further, and a browser has to hold them. */
const MAX_PAGES = 20;

/** All pages of a list that the services give in pages, as far as is sane. */
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
