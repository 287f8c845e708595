package differential

// quotaScripts test quotas that are counted and not enforced, as by default. The limits of ~/a are
// at /zookeeper/quota~/a/zookeeper_limits.
var quotaScripts = func() []script {
	const quota = "0 create /zookeeper/quota/d\n0 create /zookeeper/quota~\n0 create /zookeeper/quota~/a\n" +
		"0 create /zookeeper/quota~/a/zookeeper_limits data=\"count=2,bytes=5\"\n" +
		"0 create /zookeeper/quota~/a/zookeeper_stats data=\"count=0,bytes=0\"\n"
	const look = "1 getData /zookeeper/quota~/a/zookeeper_stats\n"
	return []script{
		{"a quota counts what is there", "0 create ~/a data=xyz\n0 create ~/a/b data=12\n" + quota + look},
		{"a quota of nothing", quota + look},
		{"a quota counts what comes", "0 create ~/a\n" + quota + "0 create ~/a/b data=xyz\n" + look + "0 create ~/a/b/c data=12\n" + look},
		{"a quota counts what goes", "0 create ~/a\n0 create ~/a/b data=xyz\n" + quota + "0 delete ~/a/b\n" + look},
		{"a quota counts bytes", "0 create ~/a\n" + quota + "0 setData ~/a data=12345\n" + look + "0 setData ~/a data=1\n" + look + "0 setData ~/a data=null\n" + look},
		{"a quota is not enforced", "0 create ~/a\n" + quota + "0 setData ~/a data=1234567890\n0 create ~/a/b data=1234567890\n0 create ~/a/c\n0 create ~/a/d\n" + look},
		{"a quota does not count its neighbours", "0 create ~/a\n0 create ~/ab\n" + quota + "0 create ~/ab/c data=xyz\n0 setData ~/ab data=1\n" + look},
		{"a quota counts within a multi", "0 create ~/a\n" + quota + "0 multi [create ~/a/b data=xyz; setData ~/a data=1; delete ~/a/b]\n" + look + "0 multi [create ~/a/b data=xyz; delete ~/none]\n" + look},
		{"a quota counts ephemerals that go", "0 create ~/a\n" + quota + "2 create ~/a/e data=xyz flags=1\n" + look + "2 closeSession\n" + look},
		{"the account leaves no trace in its Stat", "0 create ~/a\n" + quota + look + "1 getData /zookeeper/quota~/a/zookeeper_stats watch\n0 setData ~/a data=xyz\n" + look},
		{"a quota that is taken away", "0 create ~/a\n" + quota + "0 delete /zookeeper/quota~/a/zookeeper_limits\n0 setData ~/a data=xyz\n" + look + "0 delete /zookeeper/quota~/a/zookeeper_stats\n0 setData ~/a data=1\n0 getChildren /zookeeper/quota~/a"},
		{"a quota whose limits change", "0 create ~/a\n" + quota + "0 setData /zookeeper/quota~/a/zookeeper_limits data=\"count=9,bytes=9\"\n0 setData ~/a data=xyz\n" + look + "1 getData /zookeeper/quota~/a/zookeeper_limits"},
	}
}()
