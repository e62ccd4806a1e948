/** The table at hand as a file. */
export function DownloadCsv({ href }: { href: string }) {
  return (
    <a href={href} download className="text-sm text-accent underline underline-offset-4 print:hidden">
      Download as CSV
    </a>
  );
}
