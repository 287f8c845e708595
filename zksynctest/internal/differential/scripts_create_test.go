package differential

var createScripts = []script{
	{"create answers the path and makes a Stat", "0 create ~/a data=x\n1 exists ~/a\n1 getData ~/a\n1 exists ~"},
	{"create2 answers the Stat as well", "0 create2 ~/a data=xyz\n1 exists ~/a"},
	{"a znode that is there is not made again", "0 create ~/a\n0 create ~/a\n1 create2 ~/a\n1 createContainer ~/a\n1 createTTL ~/a"},
	{"a failed create takes a zxid", "0 create ~/none/a\n0 exists ~\n0 create ~/a\n0 exists ~/a"},
	{"null data stays null", "0 create ~/a data=null\n0 getData ~/a\n0 setData ~/a data=x\n0 setData ~/a data=null\n0 getData ~/a"},
	{"empty data is not null", "0 create ~/a\n0 getData ~/a"},
	{"binary data", `0 create ~/a data="\x00\x01\xfe\xff"` + "\n1 getData ~/a"},
	{"the parent must be there", "0 create ~/none/a\n0 create2 ~/none/a\n0 createContainer ~/none/a\n0 createTTL ~/none/a"},
	{"the parent comes before the rest of the path", "0 create ~//a\n0 create ~/none/../a\n0 create ~/none/"},
	{"the ACL comes before the parent", "0 create ~/none/a acl=none\n0 create ~/none/a acl=31:bogus:x"},
	{"the flags come before the ACL", "0 create ~/none/a acl=none flags=9\n0 create a acl=none\n0 create a acl=none flags=7"},
	{"flags are an enumeration", "0 create ~/a flags=7\n0 create ~/a flags=8\n0 create ~/a flags=-1\n0 create ~/a flags=256"},
	{"an ephemeral has an owner", "0 create ~/a flags=1\n1 create2 ~/b flags=1\n2 exists ~/a\n2 exists ~/b"},
	{"an ephemeral has no children", "0 create ~/a flags=1\n0 create ~/a/b\n1 create ~/a/b flags=2\n1 createContainer ~/a/b"},
	{"somebody else's ephemeral is in the way", "0 create ~/a flags=1\n1 create ~/a flags=1\n1 delete ~/a\n1 create ~/a flags=1\n0 exists ~/a"},
	{"sequence numbers count creates", "0 create ~/a flags=2\n0 create ~/a flags=2\n0 create ~/b\n0 create ~/a flags=2\n0 delete ~/b\n0 create ~/a flags=2"},
	{"sequence numbers are of the parent", "0 create ~/a\n0 create ~/b\n0 create ~/a/x- flags=2\n0 create ~/b/x- flags=2\n0 create ~/a/y- flags=2"},
	{"sequence numbers come after the name, which may be empty", "0 create ~/ flags=2\n0 create ~/ flags=3\n0 getChildren ~"},
	{"a sequence number can make a name of dots valid", "0 create ~/.. flags=2\n0 create ~/. flags=2\n0 getChildren ~"},
	{"ephemeral sequential", "0 create ~/e- flags=3\n1 create ~/e- flags=3\n1 create2 ~/e- flags=3\n2 getChildren2 ~\n0 closeSession\n2 getChildren2 ~"},
	{"a failed sequential create uses no number", "0 create ~/s- flags=2\n0 create ~/s- flags=2 acl=none\n0 create ~/s- flags=2"},
	{"a name that a sequence would take", "0 create ~/s-0000000001\n0 create ~/s- flags=2\n0 create ~/s- flags=2\n0 delete ~/s-0000000001\n0 create ~/s- flags=2"},
	{"createContainer takes other flags for what they are", "0 createContainer ~/a flags=0\n0 createContainer ~/b flags=1\n0 createContainer ~/c flags=2\n0 createContainer ~/d flags=3\n0 getChildren2 ~\n1 exists ~/b"},
	{"createContainer and flags for a TTL", "0 createContainer ~/a flags=5\n0 createContainer ~/a flags=6\n0 createContainer ~/a flags=7"},
	{"the flag of a container makes none by itself", "0 create ~/a flags=4\n0 create ~/a/b\n0 exists ~/a\n0 create2 ~/c flags=4"},
	{"a container shows no owner", "0 createContainer ~/a data=x\n0 exists ~/a\n0 create ~/a/b\n0 delete ~/a/b\n0 getData ~/a"},
	{"a TTL node shows no owner", "0 createTTL ~/a ttl=3600000\n0 exists ~/a\n0 createTTL ~/s- flags=6\n0 create ~/a/b\n0 exists ~/a"},
	{"the bounds of a TTL", "0 createTTL ~/a ttl=0\n0 createTTL ~/a ttl=-1\n0 createTTL ~/a ttl=1099511627776\n0 createTTL ~/a ttl=1099511627775"},
	{"a ttl without the flag", "0 createTTL ~/a flags=0 ttl=1000\n0 createTTL ~/a flags=1 ttl=1000\n0 createTTL ~/a flags=4 ttl=1000"},
	{"the flag without a ttl", "0 create ~/a flags=5\n0 create2 ~/a flags=6\n0 createContainer ~/a flags=5"},
	{"children count in the Stat of the parent", "0 create ~/a\n0 create ~/a/x\n0 create ~/a/y\n0 exists ~/a\n0 delete ~/a/x\n0 exists ~/a\n0 create ~/a/x\n0 exists ~/a"},
	{"the pzxid is of the latest child, made or removed", "0 create ~/a\n0 create ~/a/x\n0 exists ~/a\n0 setData ~/a\n0 setData ~/a/x\n0 exists ~/a\n0 delete ~/a/x\n0 exists ~/a"},
	{"grandchildren do not count", "0 create ~/a\n0 create ~/a/x\n0 create ~/a/x/1\n0 exists ~/a\n0 getAllChildrenNumber ~/a"},
	{"made again is another", "0 create ~/a data=x\n0 setData ~/a data=y\n0 delete ~/a\n0 create ~/a data=z\n1 getData ~/a"},
	{"many creates on one connection at a time", "0 create ~/a\n0 create ~/a/b\n0 create ~/a/b/c\n0 create ~/a/b/c/d\n0 delete ~/a/b/c/d\n0 delete ~/a\n0 getChildren2 ~/a/b"},
	{"/ is there", "0 create /\n0 create / flags=1\n0 create2 /\n0 createContainer /\n0 createTTL /"},
	{"no path at all", "0 create null\n0 create2 null\n0 createContainer null\n0 createTTL null\n0 create \"\""},
}

var deleteScripts = []script{
	{"delete any version", "0 create ~/a\n0 setData ~/a\n1 delete ~/a\n1 exists ~/a\n0 exists ~"},
	{"delete a version", "0 create ~/a\n0 delete ~/a version=1\n0 setData ~/a\n0 delete ~/a version=0\n0 delete ~/a version=1"},
	{"only -1 is any version", "0 create ~/a\n0 delete ~/a version=-2\n0 delete ~/a version=-2147483648\n0 delete ~/a version=-1"},
	{"delete what is not there", "0 delete ~/a\n0 delete ~/a/b\n0 delete ~/a version=7"},
	{"delete what has children", "0 create ~/a\n0 create ~/a/b\n0 delete ~/a\n0 delete ~/a version=5\n0 delete ~/a/b\n0 delete ~/a"},
	{"the version comes before the children", "0 create ~/a\n0 create ~/a/b\n0 delete ~/a version=1"},
	{"delete of what belongs to the server", "0 delete /\n0 delete /zookeeper\n0 delete /zookeeper/config\n0 delete /zookeeper/quota\n0 delete /zookeeper/none"},
	{"delete checks little of the path", "0 delete ~/a/\n0 delete ~//a\n0 delete ~/.\n0 delete a\n0 delete \"\"\n0 delete null\n0 delete \"~/\\x00\"\n0 delete \"~/\\x01\""},
	{"anyone may delete an ephemeral", "0 create ~/a flags=1\n1 delete ~/a\n0 getEphemerals ~\n0 closeSession"},
	{"a failed delete takes a zxid", "0 delete ~/a\n0 sync ~\n0 delete ~/a\n0 sync ~"},
	{"deleteContainer is not for clients", "0 createContainer ~/a\n0 deleteContainer ~/a\n0 exists ~/a\n0 deleteContainer ~/none\n0 sync ~"},
}

var dataScripts = []script{
	{"setData counts versions", "0 create ~/a\n0 setData ~/a data=x\n0 setData ~/a data=x\n1 setData ~/a data=yy\n1 getData ~/a"},
	{"setData of a version", "0 create ~/a\n0 setData ~/a version=0\n0 setData ~/a version=0\n0 setData ~/a version=1\n0 setData ~/a version=-2\n0 setData ~/a version=2"},
	{"setData of what is not there", "0 setData ~/a\n0 setData ~/a/b version=3\n0 setData a\n0 setData ~/\n0 setData null\n0 setData \"\""},
	{"setData leaves the parent alone", "0 create ~/a\n0 exists ~\n0 setData ~/a data=x\n0 exists ~"},
	{"setData of what has children", "0 create ~/a\n0 create ~/a/b\n0 setData ~/a data=x\n0 exists ~/a"},
	{"setData of an ephemeral", "0 create ~/a flags=1\n1 setData ~/a data=x\n1 exists ~/a"},
	{"getData of what is not there", "0 getData ~/a\n0 getData a\n0 getData ~/\n0 getData \"~/\\x00\"\n0 getData null\n0 getData ~/.."},
	{"the empty path is another name of the root", "0 getChildren \"\"\n0 exists \"\"\n0 getACL \"\"\n0 getAllChildrenNumber \"\""},
	{"exists refuses no path but one with a NUL", "0 exists ~//a\n0 exists a\n0 exists \"~/\\x00\"\n0 exists ~/\n0 exists null\n0 exists ~/.."},
	{"getChildren and getChildren2", "0 create ~/a\n0 create ~/b\n0 create ~/a/x\n1 getChildren ~\n1 getChildren2 ~\n1 getChildren ~/a/x\n1 getChildren2 ~/none\n1 getChildren null\n1 getChildren2 a"},
	{"getAllChildrenNumber", "0 create ~/a\n0 create ~/a/b\n0 create ~/a/b/c\n0 create ~/ab\n1 getAllChildrenNumber ~\n1 getAllChildrenNumber ~/a\n1 getAllChildrenNumber ~/a/b/c\n1 getAllChildrenNumber ~/none\n1 getAllChildrenNumber null\n1 getAllChildrenNumber /"},
	{"getEphemerals is of this session", "0 create ~/a flags=1\n0 create ~/ab flags=1\n1 create ~/b flags=1\n0 create ~/c\n0 getEphemerals ~\n0 getEphemerals ~/a\n0 getEphemerals \"\"\n0 getEphemerals /\n0 getEphemerals null\n0 getEphemerals \" \"\n1 getEphemerals ~\n2 getEphemerals ~"},
	{"sync looks at nothing", "0 sync ~\n0 sync ~/none\n0 sync a\n0 sync \"\"\n0 sync null\n0 sync /"},
	{"ping", "0 ping\n0 ping xid=7\n1 ping"},
	{"the xid is the client's affair", "0 exists ~ xid=-4\n0 exists ~ xid=0\n0 exists ~ xid=2147483647\n0 exists ~ xid=-8\n0 create ~/a xid=5\n0 create ~/b xid=5"},
	{"the zxid of a read is the latest", "0 exists ~\n1 create ~/a\n0 exists ~\n1 setData ~/a\n0 ping\n1 delete ~/a\n0 getChildren ~"},
	{"letters of other alphabets", "0 create ~/é data=é\n0 create ~/中文\n0 getChildren ~\n1 getData ~/é\n1 sync \"~/\\U0001F600\"\n1 sync \"~/\\xff\""},
	{"what the server keeps for itself", "0 getData /zookeeper\n0 exists /zookeeper/config\n0 getACL /zookeeper/config\n0 getChildren /zookeeper\n0 exists /zookeeper/quota\n0 getACL /"},
	{"config is for reading", "0 setData /zookeeper/config data=x\n0 create /zookeeper/config/a\n0 setACL /zookeeper/config"},
	{"reconfig is off", "0 reconfig\n0 reconfig cut=4\n0 sync ~"},
}

// pathScripts uses each path with each operation.
var pathScripts = func() (list []script) {
	for _, p := range []struct{ name, path string }{
		{"a slash at the end", "~/a/"}, {"two slashes", "~//a"}, {"a dot", "~/."}, {"two dots", "~/.."}, {"two dots within", "~/a/../b"},
		{"no slash", "a"}, {"nothing", `""`}, {"NUL", `"~/\x00"`}, {"a control character", `"~/\x1f"`}, {"DEL", `"~/\x7f"`},
		{"a control character of Latin-1", `"~/\u009f"`}, {"beyond 16 bits", `"~/\U0001F600"`}, {"private use", `"~/\ue000"`},
		{"the last of private use", `"~/\uf8ff"`}, {"past private use", `"~/\uf900"`}, {"a special", `"~/\ufff0"`}, {"before the specials", `"~/\uffef"`},
		{"no UTF-8", `"~/\xff"`}, {"a space", `"~/a b"`}, {"three dots", "~/..."}, {"a dot in front", "~/.a"}, {"a non-breaking space", `"~/\u00a0"`},
	} {
		var lines string
		for _, op := range []string{"create", "setData", "setACL", "exists", "getData", "getChildren", "getACL", "sync", "removeWatches", "delete"} {
			lines += "0 " + op + " " + p.path + "\n"
		}
		for _, op := range []string{"create", "check", "setData", "delete"} {
			lines += "1 multi [" + op + " " + p.path + "]\n"
		}
		list = append(list, script{"a path with " + p.name, lines + "0 create " + p.path + " flags=2\n1 getChildren2 ~"})
	}
	return list
}()
