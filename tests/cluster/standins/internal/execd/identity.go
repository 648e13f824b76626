package execd

import (
	"os/user"
	"strconv"
	"syscall"
)

// credential is the identity for a command: a known user brings its groups along. Nil: execd's own.
func credential(uid, gid *uint32) *syscall.Credential {
	if uid == nil {
		return nil
	}
	wanted := &syscall.Credential{Uid: *uid}
	if found, err := user.LookupId(strconv.FormatUint(uint64(*uid), 10)); err == nil {
		wanted.Gid = number(found.Gid)
		groups, _ := found.GroupIds()
		for _, group := range groups {
			wanted.Groups = append(wanted.Groups, number(group))
		}
	}
	if gid != nil {
		wanted.Gid = *gid
	}
	return wanted
}

func number(text string) uint32 {
	value, _ := strconv.ParseUint(text, 10, 32)
	return uint32(value)
}

func userName(uid uint32) string {
	text := strconv.FormatUint(uint64(uid), 10)
	if found, err := user.LookupId(text); err == nil {
		return found.Username
	}
	return text
}

func groupName(gid uint32) string {
	text := strconv.FormatUint(uint64(gid), 10)
	if found, err := user.LookupGroupId(text); err == nil {
		return found.Name
	}
	return text
}

// owners resolves names to numbers; -1 leaves the owner or group as it is.
func owners(owner, group string) (uid, gid int, err error) {
	uid, gid = -1, -1
	if owner != "" {
		found, err := user.Lookup(owner)
		if err != nil {
			return 0, 0, err
		}
		uid = int(number(found.Uid))
	}
	if group != "" {
		found, err := user.LookupGroup(group)
		if err != nil {
			return 0, 0, err
		}
		gid = int(number(found.Gid))
	}
	return uid, gid, nil
}
