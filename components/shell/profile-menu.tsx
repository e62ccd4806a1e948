"use client";

import { CircleUser, LogOut, Settings } from "lucide-react";
import { signOut } from "#components/session/sign-out.ts";
import { Link } from "#components/ui/link.tsx";
import { Menu, MenuChoices, MenuItem, MenuLink, MenuRule } from "#components/ui/menu.tsx";
import type { Theme } from "#server/contracts/theme.ts";
import { THEMES } from "./theme.ts";
import { useTheme } from "./use-theme.ts";

/** Who is signed in, how the pages look, and the way out. */
export function ProfileMenu({ name, email, theme: initial }: { name: string; email: string; theme: Theme }) {
  const [theme, choose] = useTheme(initial);
  return (
    <Menu
      trigger={
        <button
          type="button"
          className="inline-flex h-8 items-center gap-1.5 rounded-md px-2 text-sm text-ink-2 hover:bg-hover hover:text-ink"
        >
          <CircleUser aria-hidden="true" className="size-4" />
          <span className="max-w-40 truncate max-sm:sr-only">{name}</span>
        </button>
      }
    >
      <div className="px-2.5 py-1.5">
        <p className="font-medium">{name}</p>
        <p className="text-sm text-ink-2">{email}</p>
      </div>
      <MenuRule />
      <MenuLink>
        <Link href="/settings">
          <Settings aria-hidden="true" className="size-4" /> Settings
        </Link>
      </MenuLink>
      <MenuRule />
      <MenuChoices label="Appearance" value={theme} options={THEMES} onChange={choose} />
      <MenuRule />
      <MenuItem onSelect={() => void signOut()}>
        <LogOut aria-hidden="true" className="size-4" /> Sign out
      </MenuItem>
    </Menu>
  );
}
