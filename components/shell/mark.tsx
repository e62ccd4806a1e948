/** The sign of the house: a gate half raised, with water under it. */
export function Mark() {
  return (
    <span className="inline-flex items-center gap-2 text-lg font-semibold tracking-tight text-ink">
      <svg aria-hidden="true" viewBox="0 0 24 24" className="size-5 text-accent" fill="none" stroke="currentColor">
        <path d="M4 3v18M20 3v18" strokeWidth="2.4" strokeLinecap="round" />
        <path d="M4 7.5h16M4 12h16" strokeWidth="2.4" />
        <path d="M8 18c1.3-1.2 2.7-1.2 4 0s2.7 1.2 4 0" strokeWidth="2" strokeLinecap="round" />
      </svg>
      Sluice
    </span>
  );
}
